"""Asks the embedded model questions in every way: a table of answers to measure scores on.

    python -m benchmarks.scoring.table --questions 320 --output table.jsonl
    python -m benchmarks.scoring.table --split train --questions 120 --output chosen_on.jsonl

What is asked twice is answered from the cache; a table that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.asking import open_asker, settings_for
from query_mutator.base.terminal import OneLineParser, progress_bar
from query_mutator.data import load_questions, sample_questions
from query_mutator.operators import load_operators


def main(argv: Sequence[str] | None = None) -> None:
    """Asks, and writes a line for each question."""
    parser = OneLineParser(prog="python -m benchmarks.scoring.table", description=__doc__)
    parser.add_argument("--split", choices=("heldout", "train"), default="heldout")
    parser.add_argument("--questions", type=int, default=320)
    parser.add_argument("--output", type=Path, required=True)
    ask(parser.parse_args(argv))


def ask(args: argparse.Namespace) -> None:
    """Every question unchanged and by every operator."""
    questions = [question for question in load_questions() if question.split == args.split]
    operators = load_operators([])
    chosen = sample_questions(questions, args.questions)
    with (
        open_asker(operators, settings_for(operators, slots=8)) as asker,
        args.output.open("w", encoding="utf-8") as file,
        progress_bar(len(chosen), 0, doing="asking ") as bar,
    ):
        for measured in asker.each(chosen):
            file.write(json.dumps(measured.to_json(), ensure_ascii=False) + "\n")
            bar.update()


if __name__ == "__main__":
    main()
