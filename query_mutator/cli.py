"""`query-mutator SUBCOMMAND`: every command and where it lives.

A command is a module with `run(argv, prog)`, or with `add_flags(parser)` and `run(args)`. It is
imported when it is asked for, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from query_mutator import __version__
from query_mutator.base.terminal import OneLineParser, exit_code, leave

COMMANDS = {
    "train": ("query_mutator.commands.train", "train a policy"),
    "train-mutator": ("query_mutator.commands.train_mutator", "fine-tune a rewriter of one's own"),
    "evaluate": ("query_mutator.commands.evaluate", "does it help on questions it has not seen?"),
    "rescore": (
        "query_mutator.commands.rescore",
        "score again what runs have logged, without a call",
    ),
    "mutate": ("query_mutator.commands.mutate", "rewrite questions with a trained policy"),
    "show": ("query_mutator.reports.show", "learning curve and best examples of a run"),
    "report": ("query_mutator.reports.html", "runs as one page to look at, and its pictures"),
    "compare": ("query_mutator.reports.analyze", "compare runs: bests, seeds, warnings"),
    "extract": ("query_mutator.reports.extract", "every point of some metrics, as CSV or JSON"),
    "sweep": ("query_mutator.reports.sweep", "train with all combinations of some flags"),
    "bench": ("query_mutator.bench.command", "measure ways to make many calls at once"),
    "batching": ("batching.__main__", "texts to batches of a budget of tokens"),
    "data": ("batching.commands.data", "the same under longer names, as data lengths build"),
    "gym": ("batching.commands.gym", "play puzzles and keep their moves as samples"),
    "export-adapter": (
        "query_mutator.commands.export_adapter",
        "a tuned rewriter for llama.cpp and Ollama",
    ),
    "cache": ("query_mutator.models.cache", "look after the kept answers"),
    "setup": ("query_mutator.commands.setup", "fetch the weights of the embedded models"),
    "serve-embedded": ("query_mutator.servers.embedded", "serve the embedded model by itself"),
}
ALIASES = {"analyze": "compare"}
SFT = ["train", "sft"]
"""What other programs call `train-mutator`."""


def subcommand(name: str, argv: Sequence[str] | None = None, *, prog: str = "") -> int:
    """Runs one of `COMMANDS`; returns its exit code."""
    prog = prog or f"query-mutator {name}"

    def command() -> int:
        place, about = COMMANDS[name]
        module: Any = import_module(place)
        if not hasattr(module, "add_flags"):
            return int(module.run(argv, prog))
        parser = OneLineParser(prog=prog, description=about)
        module.add_flags(parser)
        return int(module.run(parser.parse_args(argv)))

    return exit_code(command)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv[:2] == SFT:
        argv = ["train-mutator", *argv[2:]]
    name = ALIASES.get(argv[0], argv[0]) if argv else ""
    if name in COMMANDS:
        return subcommand(name, argv[1:])
    return exit_code(lambda: _help(argv))


def _help(argv: Sequence[str]) -> int:
    width = max(map(len, COMMANDS))
    rows = [f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items()]
    parser = OneLineParser(
        prog="query-mutator",
        usage="query-mutator COMMAND [FLAGS]",
        description="Learns how to rephrase questions so that a language model answers them well.",
        epilog="\n".join(["commands (each has a --help of its own):", *rows]),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"query-mutator {__version__}")
    if not argv:
        parser.print_help()
        return 0
    if not argv[0].startswith("-"):
        parser.error(f"there is no command '{argv[0]}'")
    parser.parse_args(argv)
    return 0


def run_and_leave() -> None:
    """What the installed command calls."""
    leave(main())


if __name__ == "__main__":
    run_and_leave()
