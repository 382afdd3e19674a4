"""Rewrites questions with a trained policy and shows the answers before and after."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from query_mutator.base.flags import fraction
from query_mutator.base.terminal import OneLineParser
from query_mutator.commands.models import add_model_flags, changes


def build_parser(prog: str) -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(prog=prog, description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="- reads standard input")
    parser.add_argument("--run", required=True, metavar="RUN", help="directory of a trained run")
    parser.add_argument("--file", help="file with one question a line")
    add_model_flags(parser)
    parser.add_argument(
        "--only-if-confident",
        type=fraction,
        default=0.0,
        metavar="P",
        help="leave a question alone unless the best choice has at least this probability",
    )
    parser.add_argument(
        "--explain", action="store_true", help="show what similar training questions gained"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    return parser


def run(argv: Sequence[str] | None = None, prog: str = "mutate_query.py") -> int:
    """What the command does; errors are raised."""
    args = build_parser(prog).parse_args(argv)
    # Heavy imports come late: --help and a wrong flag answer at once.
    from query_mutator.evaluation.rewriting import rewrite_command

    return rewrite_command(
        args.run,
        args.questions,
        file=args.file,
        as_json=args.json,
        explain=args.explain,
        least_probability=args.only_if_confident,
        changes=changes(args),
    )
