"""`python -m experiments show RUN`: what a run learned, on the terminal."""

from __future__ import annotations

import sys

from command_line import OneLineParser
from errors import UserError


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = OneLineParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="learning curve and the best before/after examples")
    show.add_argument("run", help="directory of a run")
    try:
        args = parser.parse_args(argv)
        from experiments.show import show_run

        show_run(args.run)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
