"""Flags made from the fields of a dataclass: their help, their parsing, their limits."""

from __future__ import annotations

import argparse
import operator
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import OneLineParser

AUTO = "auto"
BETTER, LAST = "better", "last"
LARGEST_WEIGHT = 1e6
"""With larger ones a loss could leave the range of float32."""


def whole_number(text: str | float) -> int:
    """A whole number as people write it: `10000`, `1e4`, `10_000`.

    >>> whole_number("1e4"), whole_number("2_000")
    (10000, 2000)
    """
    value = float(text)
    if value != int(value):
        raise ValueError(f"{text} is not a whole number")
    return int(value)


def batch_size(text: str | float) -> int | str:
    """A number of calls, or `auto`.

    >>> batch_size("auto"), batch_size("8")
    ('auto', 8)
    """
    return AUTO if text == AUTO else whole_number(text)


def answer_to_keep(text: str | float) -> str:
    """Which of two answers is kept: `better` or `last`.

    >>> answer_to_keep("last")
    'last'
    """
    if text not in (BETTER, LAST):
        raise ValueError(f"{text} is neither")
    return str(text)


def at_least(least: int, most: int = 2**32 - 1) -> Callable[[str], int]:
    """Reads whole numbers, for argparse; smaller and larger ones are refused."""

    def read(text: str) -> int:
        try:
            value = whole_number(text)
        except (ValueError, OverflowError):
            value = least - 1
        if not least <= value <= most:
            bounds = f"from {least} on" if value < least else f"up to {most}"
            raise argparse.ArgumentTypeError(f"must be a whole number {bounds}, not {text}")
        return value

    return read


def fraction(text: str) -> float:
    """A number between 0 and 1, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, not {text}")
    return value


KINDS: dict[Any, str] = {
    float: "a number",
    str: "text",
    batch_size: "auto or a whole number",
    answer_to_keep: f"{BETTER} or {LAST}",
    whole_number: "a whole number",
}
"""What a flag's value must be, by how it is read."""
LIMITS: dict[str, Callable[[float, float], bool]] = {
    "at_least": operator.ge,
    "above": operator.gt,
    "at_most": operator.le,
}
Scalar = str | int | float


def flag(
    default: Any,
    help: str,
    *,
    parse: Callable[[Any], Any] | None = None,
    metavar: str | None = None,
    **limits: float,
) -> Any:
    """A dataclass field that becomes a flag; its limits are some of those in `LIMITS`."""
    assert limits.keys() <= LIMITS.keys()
    parse = parse or type(default)
    parse = whole_number if parse is int else parse
    metadata = {"help": help, "parse": parse, "metavar": metavar, **limits}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def weight(default: float, help: str) -> Any:
    """A flag that says how much something counts."""
    return flag(default, help, at_least=0, at_most=LARGEST_WEIGHT)


def option_of(name: str) -> str:
    """The flag of a field.

    >>> option_of("batch_size"), option_of("from_")
    ('--batch-size', '--from')
    """
    return "--" + name.rstrip("_").replace("_", "-")


def grouped_parser(
    settings: type[Any], groups: Mapping[str, str], prog: str, description: str | None
) -> argparse.ArgumentParser:
    """The command line of a dataclass of flags; it gives those alone that are typed.

    `groups` says what --help calls them, from which field on.
    """
    parser = OneLineParser(
        prog=prog,
        description=description,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=32, width=100),
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    for item in fields(settings):
        if item.name in groups:
            group = parser.add_argument_group(groups[item.name])
        _add_flag(group, item)
    return parser


def _add_flag(group: Any, item: Field[Any]) -> None:
    """Adds the flag of a field to a group of a parser."""
    option = option_of(item.name)
    default = _default(item)
    help_text = item.metadata["help"]
    if default is True:
        group.add_argument(
            option, dest=item.name, action="store_true", help=help_text + " (default)"
        )
        opposite = "--no-" + option.removeprefix("--").removeprefix("use-")
        group.add_argument(
            opposite, dest=item.name, action="store_false", help=f"the opposite of {option}"
        )
    elif isinstance(default, bool):
        group.add_argument(option, dest=item.name, action="store_true", help=help_text)
    elif isinstance(default, list):
        group.add_argument(
            option,
            dest=item.name,
            action="append",
            metavar=item.metadata["metavar"],
            help=help_text,
        )
    else:
        shown = "" if default in (None, "") else f" (default {default})"
        parse = item.metadata["parse"]
        metavar = {whole_number: "N", batch_size: "N", float: "X"}.get(parse, "TEXT")
        group.add_argument(
            option,
            dest=item.name,
            metavar=metavar,
            help=help_text.replace("%", "%%") + shown,
            type=str,
        )


def parsed(item: Field[Any], value: Any) -> Any:
    """The value of a flag from what a command line or a config file holds."""
    default, option, parse = _default(item), option_of(item.name), item.metadata["parse"]
    if value is None and default is None:
        return None
    if parse is bool:
        if not isinstance(value, bool):
            raise UserError(f"{option} must be true or false in a config file")
        return value
    if parse is list:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{option} must be a list of texts in a config file")
        return texts
    try:
        if isinstance(value, bool) or not isinstance(value, str if parse is str else Scalar):
            raise ValueError
        return parse(value)
    except (ValueError, OverflowError) as error:
        raise UserError(f"{option} must be {KINDS[parse]}, not {str(value)[:200]!r}") from error


def check_bounds(item: Field[Any], value: float) -> None:
    """Refuses a number outside of its flag's limits."""
    option = option_of(item.name)
    for name, is_within in LIMITS.items():
        limit = item.metadata.get(name)
        if limit is not None and not is_within(value, limit):  # nor is NaN within any
            raise UserError(f"{option} must be {name.replace('_', ' ')} {limit}, not {value}")
    if value in (float("inf"), float("-inf")):
        raise UserError(f"{option} must be finite")


def _default(item: Field[Any]) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default
