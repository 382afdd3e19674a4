"""How long samples are, what buckets waste, and what would do better.

Run it from the repository: python examples/batching/06_analysis.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import BucketSpec
from batching.analyze import BucketEfficiency, LengthHistogram, efficiency_report, suggest
from batching.generation import ByteTokenizer, measure_texts, read_texts

TOKEN_BUDGET = 4096

TEXTS = Path(__file__).with_name("texts.jsonl")


def main() -> None:
    lengths = [length for _, length in measure_texts(read_texts(TEXTS), ByteTokenizer())]

    print("# How long are the samples?")
    print(LengthHistogram.of(lengths, num_bins=10).to_text(bar_width=20))

    print("\n# What do these buckets make of them?")
    spec = BucketSpec.default()
    in_use = BucketEfficiency.of(lengths, spec, TOKEN_BUDGET)
    print(in_use.to_text())

    print("\n# Which edges are best, with as many buckets?")
    for goal in ("waste", "balance", "memory"):
        suggestion = suggest(lengths, num_edges=len(spec.edges), goal=goal)
        efficiency = suggestion.suggested.efficiency
        edges = ", ".join(map(str, suggestion.spec.edges))
        print(f"{goal:8} {edges}: {efficiency:.1%} of all places hold tokens")

    print("\n# And without buckets?")
    report = efficiency_report(lengths, TOKEN_BUDGET, spec)
    print(report.to_text())


if __name__ == "__main__":
    main()
