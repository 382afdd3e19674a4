"""How fast a length cache is written and loaded."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from batching.generation.length_cache import LengthCache
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, exit_code, leave


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m benchmarks.length_cache", description=__doc__)
    parser.add_argument(
        "--entries", type=at_least(1), default=1_000_000, help="entries (default: 1000000)"
    )
    args = parser.parse_args(argv)
    lengths = np.random.default_rng(0).lognormal(5.39, 0.92, args.entries).astype(int) + 1
    entries = {f"sample-{number:07d}": length for number, length in enumerate(lengths.tolist())}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lengths.jsonl"
        began = _clocks()
        with LengthCache.create(path, "0123456789abcdef") as cache:
            cache.add_many(entries)
        written = _clocks()
        loaded = LengthCache.open(path, read_only=True)
        ended = _clocks()
        assert loaded.lengths() == entries
        print(
            f"{args.entries:,} entries, {path.stat().st_size / 1e6:.0f} MB: "
            f"written in {_seconds(began, written)}, loaded in {_seconds(written, ended)}"
        )
    return 0


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _seconds(began: tuple[float, float], ended: tuple[float, float]) -> str:
    """The time taken; that of the core is the same when others use the machine too."""
    taken, core = (after - before for before, after in zip(began, ended, strict=True))
    return f"{taken:.2f} s ({core:.2f} s of a core)"


if __name__ == "__main__":
    leave(exit_code(run))
