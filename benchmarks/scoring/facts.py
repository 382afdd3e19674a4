"""Does the fact finder find what a person finds? Precision and recall on labelled answers.

    python -m benchmarks.scoring.facts              # to choose by: dev*.jsonl
    python -m benchmarks.scoring.facts --part test

Labels to choose by are cross-validated: each question's facts are found by weights that were
learned without it. `own` answers are the embedded model's, `ordinary` ones were written as models
of several kinds answer, `hard` ones as traps. `--file` takes other labelled answers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from query_mutator.base.tables import layout
from query_mutator.base.terminal import OneLineParser
from query_mutator.english.facts.finder import decide, shipped_weights
from query_mutator.english.facts.learn import (
    DATA,
    LABELLED,
    Example,
    cross_validated,
    read_examples,
)

REAL = "135M"
"""The style of the labelled answers that the embedded model gave itself."""
PARTS = {"dev": LABELLED, "test": tuple(sorted((DATA / "answers").glob("test*.jsonl")))}


def main(argv: Sequence[str] | None = None) -> None:
    """Finds the facts of the labelled answers and prints how often a person agrees."""
    parser = OneLineParser(prog="python -m benchmarks.scoring.facts", description=__doc__)
    parser.add_argument("--part", choices=tuple(PARTS), default="dev")
    parser.add_argument("--file", type=Path, action="append", help="labelled answers (repeatable)")
    report(parser.parse_args(argv))


def report(args: argparse.Namespace) -> None:
    """The tables, one by fact and one by answer."""
    examples = read_examples(args.file or PARTS[args.part])
    if args.part == "dev" and not args.file:
        found = cross_validated(examples)
    else:
        weights = shipped_weights()
        found = [decide(one.mentions, one.facts == 1, weights).found for one in examples]
    print(table("facts", examples, found))
    print()
    first, all_found = by_answer(examples, found)
    print(table("answers", first, all_found))


HEADER = ("of", "", "given", "found", "both", "precision", "recall")


def by_answer(
    examples: Sequence[Example], found: Sequence[bool]
) -> tuple[list[Example], list[bool]]:
    """The answers, given where all their facts are, and whether all were found."""
    first: list[Example] = []
    every: list[bool] = []
    for one, is_found in zip(examples, found, strict=True):
        if one.fact == 0:
            first.append(one)
            every.append(is_found)
        else:
            first[-1] = one.with_given(first[-1].given and one.given)
            every[-1] = every[-1] and is_found
    return first, every


def table(unit: str, examples: Sequence[Example], found: Sequence[bool]) -> str:
    """Precision and recall of all and of each kind of answers."""
    kinds = {
        "all": [True for _ in examples],
        "own": [one.style == REAL for one in examples],
        "ordinary": [one.style != REAL and not one.hard for one in examples],
        "hard": [bool(one.hard) for one in examples],
    }
    rows = [HEADER]
    for kind, chosen in kinds.items():
        pairs = [
            (one.given, is_found)
            for one, is_found, counts in zip(examples, found, chosen, strict=True)
            if counts
        ]
        given, got = sum(one for one, _ in pairs), sum(one for _, one in pairs)
        both = sum(one and other for one, other in pairs)
        precision, recall = (f"{both / most:.3f}" if most else "" for most in (got, given))
        name = f"{len(pairs)} {unit}"
        rows.append((name, kind, str(given), str(got), str(both), precision, recall))
    return layout(rows)


if __name__ == "__main__":
    main()
