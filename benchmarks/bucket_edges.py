"""How fast the best bucket edges are found, for each goal."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from batching.analyze import BucketEfficiency, Goal, suggest_edges
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, exit_code, leave

MEDIAN, SPREAD = 219, 0.925
"""Of the lognormal lengths: their mean is about 336."""


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m benchmarks.bucket_edges", description=__doc__)
    add = parser.add_argument
    add("--samples", type=at_least(1), default=1_000_000, help="lengths (default: 1000000)")
    add("--edges", type=at_least(1), default=8, help="edges to find (default: 8)")
    args = parser.parse_args(argv)
    generator = np.random.default_rng(0)
    lengths = generator.lognormal(np.log(MEDIAN), SPREAD, args.samples).astype(np.int64) + 1
    print(f"{args.samples:,} lengths, {len(np.unique(lengths)):,} distinct, {args.edges} edges")
    for goal in Goal:
        began = time.perf_counter()
        spec = suggest_edges(lengths, args.edges, goal)
        seconds = time.perf_counter() - began
        efficiency = BucketEfficiency.of(lengths, spec).efficiency
        print(f"{goal}: {seconds:.2f} s, {efficiency:.1%} of places hold tokens, {spec.edges}")
    return 0


if __name__ == "__main__":
    leave(exit_code(run))
