"""Shows, compares and exports runs, and runs sweeps."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from query_mutator.base.terminal import OneLineParser, exit_code, leave

COMMANDS = {
    "show": "learning curve and the best before/after examples of a run",
    "analyze": "compare runs: bests, the same step, the same minute, seeds, warnings",
    "extract": "every point of some metrics, as CSV or JSON lines",
    "report": "runs as one page to look at, and its figures as pictures",
    "sweep": "train with all combinations of some flags, and compare",
}
"""Each is a module of this package with `add_flags` and `run`."""


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="query-mutator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    for name, told in COMMANDS.items():
        command = commands.add_parser(name, help=told, description=told)
        module = import_module(f"query_mutator.reports.{'html' if name == 'report' else name}")
        module.add_flags(command)
        command.set_defaults(run=module.run)
    args: argparse.Namespace = parser.parse_args(argv)
    code: int = args.run(args)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return exit_code(lambda: run(argv))


if __name__ == "__main__":
    leave(main())
