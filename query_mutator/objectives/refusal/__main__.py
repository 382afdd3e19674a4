"""Measures the refusal detector on labelled answers.

`python -m query_mutator.objectives.refusal [FILE…]` reads JSONL with `question`, `answer`, `label`
(`refusal` or `answer`) and `kind`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from query_mutator.base.terminal import OneLineParser, as_main, printable
from query_mutator.models.encoders import load_encoder
from query_mutator.objectives.refusal.detector import find_refusals
from query_mutator.objectives.refusal.labelled import LABELLED, read_labelled, report

TEST_FILES = LABELLED / "test"
SHOWN_CHARACTERS = 100


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m query_mutator.objectives.refusal", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--show", action="store_true", help="print the answers it gets wrong")
    args = parser.parse_args(argv)
    rows = read_labelled(args.files or sorted(TEST_FILES.glob("*.jsonl")))
    questions, answers = ([row[name] for row in rows] for name in ("question", "answer"))
    found = find_refusals(questions, answers, load_encoder().encode_each)
    print(report(rows, [bool(refusal.kind) for refusal in found]))
    for row, refusal in zip(rows, found, strict=True):
        if args.show and bool(refusal.kind) != (row["label"] == "refusal"):
            by = f"{refusal.kind} by '{refusal.phrase}'" if refusal.kind else "an answer"
            print(printable(f"taken for {by}: {row['answer']}")[:SHOWN_CHARACTERS])
    return 0


main = as_main(run)

if __name__ == "__main__":
    raise SystemExit(main())
