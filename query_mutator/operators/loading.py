"""Reads operator files (TOML) and tells what is wrong with them."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import read_text
from query_mutator.operators.edits import EDITS
from query_mutator.operators.operator import Operator

DEFAULT_FILE = Path(__file__).with_name("default.toml")
MORE_FILE = Path(__file__).with_name("more.toml")
"""Operators that are used where somebody names them."""
MOST_BYTES = 256 * 1024
LONGEST_SHOWN = 200
RESERVED = ("stop", "unchanged")
KEYS = {
    "name": str,
    "preserves_meaning": bool,
    "description": str,
    "template": str,
    "edits": list,
    "instruction": str,
    "examples": list,
    "ends_with": str,
    "tuned": bool,
}


def load_operators(extra_files: Sequence[str | Path] = ()) -> list[Operator]:
    """The shipped operators and those of the user's files, in order."""
    operators: list[Operator] = []
    for file in [DEFAULT_FILE, *map(Path, extra_files)]:
        for operator in _read_file(file):
            if any(operator.name == known.name for known in operators):
                raise UserError(
                    f"{file}: there is already an operator '{operator.name}'; rename it"
                )
            operators.append(operator)
    return operators


def named_operators(names: Sequence[str], extra_files: Sequence[str | Path] = ()) -> list[Operator]:
    """The operators that are named, of all there are; the default set where none is.

    The user's own go before shipped ones that are not in the default set.
    """
    if not names:
        return load_operators(extra_files)
    return select_operators(shipped_operators(extra_files), names)


def shipped_operators(extra_files: Sequence[str | Path] = ()) -> list[Operator]:
    """Every operator there is to name, in the default set or not, and those of the user's files."""
    operators = load_operators(extra_files)
    known = {operator.name for operator in operators}
    return operators + [one for one in _read_file(MORE_FILE) if one.name not in known]


def select_operators(operators: Sequence[Operator], names: Sequence[str]) -> list[Operator]:
    """Those of `operators` that `names` lists, in its order; all where it is empty."""
    by_name = {operator.name: operator for operator in operators}
    for name in names:
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, n=1)
            hint = f"did you mean '{near[0]}'? " if near else ""
            raise UserError(f"no operator '{name}': {hint}There are: {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)] if names else list(operators)


def _read_file(file: Path) -> list[Operator]:
    text = read_text(file, "the operator file", most_bytes=MOST_BYTES)
    try:
        data = tomllib.loads(text)
    except RecursionError as error:
        raise UserError(f"{file} is not a TOML file: nested too deep") from error
    except ValueError as error:  # a number of thousands of digits is not a TOMLDecodeError
        raise UserError(f"{file} is not a TOML file: {str(error)[:LONGEST_SHOWN]}") from error
    entries = data.get("operator")
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{file} has no [[operator]] entry; see docs/extending.md")
    return [_operator(file, number, entry) for number, entry in enumerate(entries, 1)]


def _operator(file: Path, number: int, entry: Any) -> Operator:
    def refuse(why: str) -> UserError:
        label = str(entry.get("name", ""))[:LONGEST_SHOWN] if isinstance(entry, dict) else None
        return UserError(f"{file}: operator {label or number}: {why}; see docs/extending.md")

    if not isinstance(entry, dict):
        raise refuse("not a table")
    for key, value in entry.items():
        if key not in KEYS:
            raise refuse(f"unknown key '{key[:LONGEST_SHOWN]}' (known: {', '.join(KEYS)})")
        if not isinstance(value, KEYS[key]):
            raise refuse(f"'{key}' must be a {KEYS[key].__name__}")
    name = entry.get("name", "")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name in RESERVED:
        raise refuse(
            f"'name' must be lower case letters, digits and _, and not {' or '.join(RESERVED)}"
        )
    asks_model = "instruction" in entry
    if asks_model == ("template" in entry) and (asks_model or "edits" not in entry):
        raise refuse("give 'instruction', 'template' or 'edits', and no template to an instruction")
    if "template" in entry and "{query}" not in entry["template"]:
        raise refuse("'template' must contain {query}")
    edits = entry.get("edits", [])
    for edit in edits:
        if edit not in tuple(EDITS):
            raise refuse(f"no edit {repr(edit)[:LONGEST_SHOWN]} (known: {', '.join(EDITS)})")
    if "edits" in entry and not edits:
        raise refuse("'edits' is empty")
    examples = entry.get("examples", [])
    for example in examples:
        if not (
            isinstance(example, list)
            and len(example) == 2
            and all(isinstance(text, str) for text in example)
        ):
            raise refuse("each of 'examples' must be [before, after]")
    if entry.get("tuned") and not asks_model:
        raise refuse("'tuned' belongs to an instruction")
    if examples and not asks_model:
        raise refuse("'examples' belong to an instruction")
    return Operator(**{**entry, "edits": tuple(edits), "examples": tuple(map(tuple, examples))})
