"""`python -m experiments show RUN`: what a run learned, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from command_line import OneLineParser, exit_code, leave


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    show = commands.add_parser("show", help="learning curve and the best before/after examples")
    show.add_argument("run", help="directory of a run")
    args = parser.parse_args(argv)
    from experiments.show import show_run

    show_run(args.run)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return exit_code(lambda: run(argv))


if __name__ == "__main__":
    leave(main())
