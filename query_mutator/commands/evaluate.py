"""Tells whether a trained policy makes answers better on questions that it has not seen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from query_mutator.base.flags import at_least, fraction
from query_mutator.base.terminal import OneLineParser
from query_mutator.commands.models import add_model_flags, changes
from query_mutator.evaluation.defaults import MARGIN, TRAINING_QUESTIONS


def build_parser(prog: str) -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(
        prog=prog,
        description=__doc__,
        epilog="example: query-mutator evaluate runs/NAME --target-model llama3.2:1b",
    )
    add = parser.add_argument
    add(
        "run",
        metavar="RUN",
        nargs="+",
        help="directory of a trained run; several, as with several seeds, are judged together too",
    )
    add("--dataset", metavar="FILE", help="take the held-out questions of this file")
    add(
        "--num-questions",
        type=_so_many,
        metavar="N",
        help="ask a sample of so many held-out questions, or `all` (default: as many as the run's "
        "--eval-questions says, else all; of a --dataset all)",
    )
    add(
        "--num-training-questions",
        type=at_least(1),
        default=TRAINING_QUESTIONS,
        metavar="N",
        help="training questions on which the best single operator is chosen "
        "(default: %(default)s)",
    )
    add(
        "--margin",
        type=fraction,
        default=MARGIN,
        metavar="X",
        help="difference in score that nobody would miss (default: %(default)s)",
    )
    add(
        "--twins",
        type=at_least(0),
        metavar="N",
        help="pairs on which the gap between clear and messy wordings is measured, at most; a pair "
        "costs one call where the messy one is a held-out question, else as much as a question; "
        "0: none (default: all of the former, and of the latter a tenth of the questions)",
    )
    add(
        "--contender",
        metavar="PATH",
        action="append",
        default=[],
        help="adapter of the embedded model to compare: a GGUF, or a directory of train-mutator or "
        "export-adapter; clarify is asked with it, beside the run's own operators (repeatable)",
    )
    add_model_flags(parser, target="; another one: transfer")
    add("--judge-model", help="model that judges, for the objective judge")
    add(
        "--max-outage",
        metavar="S",
        help="seconds to wait for servers of which none answers (default: as in training)",
    )
    add("--output", metavar="DIR", help="where the results go (default: in the run's directory)")
    return parser


def _so_many(text: str) -> int:
    """A number of questions, for argparse; 0 for `all`."""
    return 0 if text == "all" else at_least(1)(text)


def run(argv: Sequence[str] | None = None, prog: str = "evaluate_query_mutator.py") -> int:
    """What the command does; errors are raised."""
    args = build_parser(prog).parse_args(argv)
    # Heavy imports come late: --help and a wrong flag answer at once.
    from query_mutator.evaluation.command import evaluate_command
    from query_mutator.reports.html import refresh_report

    evaluate_command(
        args.run,
        dataset=args.dataset,
        num_questions=args.num_questions,
        num_training=args.num_training_questions,
        output=args.output,
        margin=args.margin,
        twins=args.twins,
        contenders=args.contender,
        changes=changes(args),
    )
    for run in args.run:
        refresh_report(Path(run))
    return 0
