"""A replay buffer as a JSON file: one document with an entry on each line, and its digest."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from batching.streaming.samples import MOST_VALUES, StreamSample, check_readable
from query_mutator.base.errors import UserError
from query_mutator.base.files import write_atomically
from query_mutator.base.locks import left_over
from query_mutator.base.untrusted import DEEPEST, parse_json, read_lines

VERSION = 1
WHAT = "the replay buffer"
BEGINNING = b', "entries": [\n'
END = b'], "sha256": "'
"""What stands before the digest, which is of all bytes before this."""

Entries = Iterable[tuple[int, StreamSample]]
"""Samples, each with how many had come before it."""


def write_buffer(path: Path, head: dict[str, Any], entries: Entries) -> None:
    """Writes a buffer, whose `size` is in its head, whole or not at all.

    It is for who has the lock of the file: whoever else wrote to it must be dead.
    """
    for unfinished in left_over(path):
        unfinished.unlink(missing_ok=True)
    write_atomically(path, lambda file: _write(file, {"version": VERSION, **head}, entries))


def _write(file: BinaryIO, head: dict[str, Any], entries: Entries) -> None:
    digest = hashlib.sha256()

    def write(data: bytes) -> None:
        digest.update(data)
        file.write(data)

    write(_json(head)[:-1] + BEGINNING)
    for slot, (number, sample) in enumerate(entries, 1):
        entry = {"number": number, **sample.to_dict()}
        line = _json(entry) + (b",\n" if slot < head["size"] else b"\n")
        check_readable(line, sample)
        write(line)
    file.write(END + digest.hexdigest().encode() + b'"}\n')


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


@contextlib.contextmanager
def opened_buffer(path: Path) -> Iterator[tuple[dict[str, Any], Entries]]:
    """The head of a file and its entries; `UserError` says what is wrong with one that has none."""
    try:
        digest = hashlib.sha256()
        lines = read_lines(path, WHAT)
        first = next(lines, b"")
        digest.update(first)
        if not first.endswith(BEGINNING):
            raise ValueError("it does not begin as one")
        head = parse_json(first.removesuffix(BEGINNING) + b"}", deepest=DEEPEST)
        if head["version"] != VERSION:
            version = f"of version {head['version']!r}; {VERSION} can be read"
            raise UserError(f"{WHAT} {path} is {version}")
        yield head, _entries(lines, digest)
    except (ValueError, KeyError, TypeError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"{WHAT} {path} is damaged: {why}\nUse a copy of it, or begin with an empty buffer."
        ) from error


def _entries(lines: Iterator[bytes], digest: Any) -> Iterator[tuple[int, StreamSample]]:
    """The entries; raises ValueError at the end of a file that is not what was written."""
    for line in lines:
        if line.startswith(END):
            if line != END + digest.hexdigest().encode() + b'"}\n' or next(lines, None) is not None:
                raise ValueError("its digest does not fit")
            return
        digest.update(line)
        # How deep it goes is checked with `meta`: the tokens are too many to walk over.
        entry = parse_json(line.rstrip(b",\n"), most_values=MOST_VALUES)
        if not isinstance(entry, dict):
            raise ValueError("an entry is no object")
        number = whole(entry, "number")
        yield number, StreamSample.from_dict({k: v for k, v in entry.items() if k != "number"})
    raise ValueError("its end is missing")


def whole(values: dict[str, Any], name: str) -> int:
    """The number from 0 on in a file; raises ValueError."""
    value: int = values[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return value
