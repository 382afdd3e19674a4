"""How well drift tells the same question from another one.

    python -m benchmarks.scoring.drift               # what its weights were learned on
    python -m benchmarks.scoring.drift --part test   # held-out twins, and rewrites never looked at
    python -m benchmarks.scoring.drift --part test_2 # the same by another hand
    python -m benchmarks.scoring.drift --model DIR   # with another embedding model

A twin asks the same: it should cost nothing. With `--part dev`, each question is judged by weights
that were learned on others, beside the shipped weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.scoring.drift_pairs import Labelled, rewrites, twins
from benchmarks.scoring.drift_table import table
from query_mutator.base.terminal import OneLineParser
from query_mutator.models.encoders import load_encoder
from query_mutator.models.settings import PACKAGED_MODEL
from query_mutator.objectives.drift.detector import shipped_detector

PARTS = {"dev": "train", "test": "heldout", "test_2": "heldout"}
"""The rewrites of a part, and the split whose twins go with them."""


def main(argv: Sequence[str] | None = None) -> None:
    """Compares, and prints the shares."""
    parser = OneLineParser(prog="python -m benchmarks.scoring.drift", description=__doc__)
    parser.add_argument("--part", choices=PARTS, default="dev")
    parser.add_argument("--model", default=PACKAGED_MODEL, help="an embedding model's directory")
    args = parser.parse_args(argv)
    pairs = [*twins(PARTS[args.part]), *rewrites(args.part)]
    if args.part == "dev":
        print("judged by weights that were learned on other questions")
        print(table(_by_others()))
        print("\njudged by the shipped weights, which have seen these pairs")
    print(table(list(zip(pairs, _by_shipped(pairs, args), strict=True))))


def _by_shipped(pairs: Sequence[Labelled], args: argparse.Namespace) -> list[float]:
    encode = load_encoder(args.model).encode_each
    questions, rewritten = [pair.question for pair in pairs], [pair.rewrite for pair in pairs]
    return [drift.value for drift in shipped_detector().find(questions, rewritten, encode)]


def _by_others() -> list[tuple[Labelled, float]]:
    from benchmarks.scoring.drift_learn import TO_LEARN, left_out

    found = left_out()
    return [
        (pair, float(value))
        for pair, value in zip(found.pairs, found.values, strict=True)
        if pair.source in ("twins", *TO_LEARN)
    ]


if __name__ == "__main__":
    main()
