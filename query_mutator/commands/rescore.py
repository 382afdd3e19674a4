"""Scores what a run has logged by the score of today, without a call."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def add_flags(parser: ArgumentParser) -> None:
    """The command line of `rescore`."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="directory of a run; the results go to its directory rescored/, nothing else changes",
    )


def run(args: Namespace) -> int:
    """What the command does; errors are raised."""
    # Heavy imports come late: --help and a wrong flag answer at once.
    from query_mutator.evaluation.rescoring import rescore_command

    rescore_command(args.runs)
    return 0
