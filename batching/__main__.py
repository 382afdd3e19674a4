"""Turns texts into batches of a fixed number of tokens that waste little and anyone can repeat."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from batching.commands import analysis, generate, gym, lengths, plans, trajectories
from query_mutator.base.terminal import OneLineParser, as_main, leave

GROUPS = (lengths, analysis, plans, generate, gym, trajectories)
ORDER = "in this order: lengths build, suggest, plan build, generate (docs/token_batching.md)"


def run(argv: Sequence[str] | None = None, prog: str = "python -m batching") -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog=prog, description=__doc__, epilog=ORDER)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    for group in GROUPS:
        group.add_commands(commands)
    args: argparse.Namespace = parser.parse_args(argv)
    code: int = args.run(args)
    return code


main = as_main(run)

if __name__ == "__main__":
    leave(main())
