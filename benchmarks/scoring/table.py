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

from query_mutator.base.terminal import OneLineParser, progress_bar
from query_mutator.data import load_questions, sample_questions
from query_mutator.environment.episodes import EpisodeView
from query_mutator.environment.scoring import scoring_runner
from query_mutator.evaluation.measuring import Asking, measure_flow
from query_mutator.models.cache import default_cache_file
from query_mutator.models.session import open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import Weights, load_objective
from query_mutator.operators import load_operators

ANSWER_TOKENS = 40


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
    settings = ModelSettings(
        server="embedded",
        slots=8,
        max_tokens_answer=ANSWER_TOKENS,
        cache_file=default_cache_file(),
    )
    objective = load_objective("answer", Weights())
    with open_models(settings) as models, args.output.open("w", encoding="utf-8") as file:
        asking = Asking(operators, EpisodeView(len(operators), 1), objective, models.roles)
        runner = scoring_runner(objective, models, None)
        chosen = sample_questions(questions, args.questions)
        flows = (measure_flow(question, asking) for question in chosen)
        with progress_bar(len(chosen), 0, doing="asking ") as bar:
            for _, measured in runner.each(flows):
                file.write(json.dumps(measured.to_json(), ensure_ascii=False) + "\n")
                bar.update()


if __name__ == "__main__":
    main()
