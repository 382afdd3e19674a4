"""Reads what others wrote, files and JSON: with bounds, and with an error that fits in a line."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from query_mutator.base.errors import UserError
from query_mutator.base.files import BINARY

MOST_BYTES = 64 * 1024 * 1024
MOST_ROWS = 200_000
MOST_VALUES = 1_000_000
"""Of lists, objects and what is in them: three bytes of JSON can take seventy in memory."""
DEEPEST = 50
"""Levels of lists and objects in a file; deeper ones break what walks through them."""


def read_text(path: str | Path, what: str, *, most_bytes: int = MOST_BYTES) -> str:
    """The text of a file that the user named as `what`; `UserError` says why there is none."""
    with open_file(path, what) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise UserError(f"{what} {path} is larger than {most_bytes / 1e6:.0f} MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{what} {path} is not UTF-8 text: {error.reason}") from error


def check_rows(text: str, what: str, path: str | Path, *, between: str = "") -> None:
    """Refuses a text of too many lines, or of too many cells with the mark `between` them."""
    cells = text.count(between) if between else 0
    if text.count("\n") > MOST_ROWS or cells > MOST_VALUES:
        raise UserError(f"{what} {path} has too many rows; {MOST_ROWS:,} at most are read")


def read_lines(path: str | Path, what: str, *, most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """The lines of a file that may be larger than memory; a line may not."""
    with open_file(path, what) as file:
        while line := file.readline(most_bytes + 1):
            if len(line) > most_bytes:
                raise UserError(f"{what} {path} has a line of more than {most_bytes / 1e6:.0f} MB")
            yield line


def open_file(path: str | Path, what: str) -> BinaryIO:
    """The file, open: no directory, and no pipe or device, which may never end."""
    try:
        # Without O_NONBLOCK a pipe that nobody writes to would hold us here; not so on Windows.
        handle = os.open(path, os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise UserError(f"cannot read {what} {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"cannot read {what} {str(path)!r}: no file has such a name") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UserError(f"cannot read {what} {path}: it is not a file")
    return os.fdopen(handle, "rb")


def parse_json(
    content: str | bytes, *, deepest: int | None = None, most_values: int = MOST_VALUES
) -> Any:
    """The value in some JSON; `ValueError` for what is none, and for what is out of proportion."""
    if isinstance(content, bytes):
        content = content.decode("utf-8", "surrogatepass")
    if sum(content.count(mark) for mark in ",[{") > most_values:
        raise ValueError(f"more than {most_values} values")
    too_deep = ValueError(f"nested more than {deepest} levels deep" if deepest else "too deep")
    try:
        value = json.loads(content, parse_constant=_refuse_constant)
    except RecursionError:
        raise too_deep from None
    if deepest is not None and _deeper(value, deepest):
        raise too_deep
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_deeper(item, levels - 1) for item in inner)
