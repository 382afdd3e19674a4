"""What the commands share: how they are added, what they read, where they may write."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import OneLineParser, printable
from query_mutator.base.untrusted import parse_json

if TYPE_CHECKING:
    from batching.generation.length_cache import LengthCache

LONGEST_EDGE = 2**40
PARTIAL = ".partial"
NO_EDGES = "none"
MAKES = "`lengths build` makes"
LONGEST_HEADER = 2**16

Item = TypeVar("Item")
Commands = Any
"""What `add_subparsers` gives; argparse has no public name for it."""


def add_command(
    commands: Commands,
    name: str,
    about: str,
    run: Callable[[argparse.Namespace], int],
    *,
    example: str,
) -> argparse.ArgumentParser:
    """A command that calls `run`, with an example of its flags under its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=f"{about[:1].upper()}{about[1:]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.epilog = f"example:\n  {parser.prog} {example}"
    parser.set_defaults(run=run)
    return parser


def add_group(commands: Commands, name: str, about: str) -> Commands:
    """A command that has commands of its own."""
    parser = commands.add_parser(name, help=about, description=f"{about[:1].upper()}{about[1:]}.")
    return parser.add_subparsers(dest="subcommand", required=True, parser_class=OneLineParser)


def run_commands(
    argv: Sequence[str] | None,
    prog: str,
    about: str | None,
    adders: Iterable[Callable[[Commands], None]],
    epilog: str | None = None,
) -> int:
    """What the command that is named on a command line does; `adders` add those there are."""
    parser = OneLineParser(prog=prog, description=about, epilog=epilog)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    for add in adders:
        add(commands)
    args = parser.parse_args(argv)
    code: int = args.run(args)
    return code


def add_lengths(parser: Any, *flags: str) -> None:
    """The flag that names a length cache."""
    parser.add_argument(
        *flags, dest="lengths", required=True, type=Path, metavar="FILE",
        help="lengths that `lengths build` wrote",
    )  # fmt: skip


def add_plan(parser: Any) -> None:
    """The flag that names a plan."""
    parser.add_argument(
        "-p", "--plan", required=True, type=Path, metavar="DIR", help="what `plan build` wrote"
    )


def add_dataset(parser: Any) -> None:
    """The flag that names a data set."""
    parser.add_argument(
        "-d", "--dataset", required=True, type=Path, metavar="FILE",
        help="a .jsonl, .csv or .parquet with text, prompt and completion, instruction and "
        "response, or messages; a .txt with a text on each line; or the directory of a run, whose "
        "good rewrites are taken",
    )  # fmt: skip


def add_tokenizer(parser: Any, *, default: str | None = None) -> None:
    """The flag that names a tokenizer."""
    parser.add_argument(
        "-t", "--tokenizer", required=default is None, default=default, metavar="NAME",
        help="bytes, embedded (that of the shipped model), a tokenizer.json or its directory, a "
        ".gguf, or a model on the hub, as gpt2" + (f" (default {default})" if default else ""),
    )  # fmt: skip


def add_json(parser: Any) -> None:
    """The flag that asks for JSON."""
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def add_overwrite(parser: Any) -> None:
    """The flag that allows replacing what is there."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace what is there (else it is refused)"
    )


def edges(text: str) -> tuple[int, ...]:
    """Ascending lengths between commas, or `none`, for argparse.

    >>> edges("128,256,512"), edges("none")
    ((128, 256, 512), ())
    """
    if text == NO_EDGES:
        return ()
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    ascending = all(before < after for before, after in zip((0, *found), found, strict=False))
    if not found or not ascending or found[-1] > LONGEST_EDGE:
        raise argparse.ArgumentTypeError(
            f"must be ascending whole numbers, as in 128,256,512, not {printable(text)}"
        )
    return found


def is_lengths(path: Path) -> bool:
    """Whether a file begins as a length cache does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        line = file.readline(LONGEST_HEADER)
    try:
        header = parse_json(line, deepest=2)
    except ValueError:
        return False
    return isinstance(header, dict) and {"tokenizer_hash", "version"} <= set(header)


def partial_of(path: Path) -> Path:
    """Where the lengths of an unfinished `lengths build` are."""
    return path.with_name(path.name + PARTIAL)


def open_lengths(path: Path) -> LengthCache:
    """The lengths in a file, to be read; `UserError` where there are none."""
    from batching.generation.length_cache import LengthCache

    if not path.exists() and partial_of(path).exists():
        raise UserError(
            f"{path} is not complete: measuring was interrupted.\n"
            "The same `lengths build` command goes on with it"
        )
    if not path.exists():
        raise UserError(f"there is no {path}; {MAKES} it")
    if not is_lengths(path):
        raise UserError(f"{path} holds no lengths; {MAKES} them")
    cache = LengthCache.open(path, read_only=True)
    if not len(cache):
        raise UserError(f"{path} holds no lengths")
    return cache


def bar(
    items: Iterable[Item], total: int | None, doing: str, unit: str, *, done: int = 0
) -> Iterator[Item]:
    """The items, with a progress bar on the terminal while they are taken."""
    from tqdm import tqdm

    return iter(
        tqdm(
            items, total=total, desc=doing, unit=f" {unit}", initial=done, file=sys.stderr,
            disable=None, dynamic_ncols=True, smoothing=0.1, leave=False,
        )
    )  # fmt: skip


def print_json(value: Any) -> None:
    """Prints a value as JSON in which nothing drives a terminal."""
    print(json.dumps(value, indent=2))


def pairs(rows: Sequence[tuple[str, str]], *, indent: str = "  ") -> str:
    """Names and what they stand for, on a line each."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{indent}{name.ljust(width)}  {value}" for name, value in rows)
