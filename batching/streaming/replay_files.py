"""A replay buffer as a JSON file: one document with an entry on each line, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from batching.streaming.replay_state import ReplayCounts, Storable
from batching.streaming.samples import MOST_VALUES, StreamSample, check_readable
from query_mutator.base.errors import UserError
from query_mutator.base.files import write_atomically
from query_mutator.base.locks import left_over, only_writer
from query_mutator.base.untrusted import DEEPEST, parse_json, read_lines

B = TypeVar("B", bound=Storable)

VERSION = 1
WHAT = "the replay buffer"
BEGINNING = b', "entries": [\n'
END = b'], "sha256": "'
"""What stands before the digest, which is of all bytes before this."""


def save_buffer(buffer: Storable, path: Path) -> None:
    """Writes a buffer whole or not at all: a process killed meanwhile leaves the file of before."""
    with only_writer(path):
        write_buffer(buffer, path)


def write_buffer(buffer: Storable, path: Path) -> None:
    """The same for who has the buffer's lock: whoever else wrote to it must be dead."""
    for unfinished in left_over(path):
        unfinished.unlink(missing_ok=True)
    write_atomically(path, lambda file: _write(buffer, file))


def _write(buffer: Storable, file: BinaryIO) -> None:
    digest = hashlib.sha256()

    def write(data: bytes) -> None:
        digest.update(data)
        file.write(data)

    head = {
        "version": VERSION,
        "max_size": buffer.max_size,
        "eviction": str(buffer.eviction),
        "priority_exponent": buffer.priority_exponent,
        "counts": asdict(buffer.counts),
        "generator": buffer.generator_state,
        "size": len(buffer),
    }
    write(_json(head)[:-1] + BEGINNING)
    for slot, (number, sample) in enumerate(buffer.numbered(), 1):
        entry = {"number": number, **sample.to_dict()}
        line = _json(entry) + (b",\n" if slot < len(buffer) else b"\n")
        check_readable(line, sample)
        write(line)
    file.write(END + digest.hexdigest().encode() + b'"}\n')


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def load_buffer(kind: type[B], path: Path) -> B:
    """The buffer in a file; `UserError` says what is wrong with a file that holds none."""
    try:
        return _read(kind, path)
    except (ValueError, KeyError, TypeError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"{WHAT} {path} is damaged: {why}\nUse a copy of it, or begin with an empty buffer."
        ) from error


def _read(kind: type[B], path: Path) -> B:
    digest = hashlib.sha256()
    lines = read_lines(path, WHAT)
    first = next(lines, b"")
    digest.update(first)
    if not first.endswith(BEGINNING):
        raise ValueError("it does not begin as one")
    head = parse_json(first.removesuffix(BEGINNING) + b"}", deepest=DEEPEST)
    if head["version"] != VERSION:
        raise UserError(f"{WHAT} {path} is of version {head['version']!r}; {VERSION} can be read")
    buffer = kind(
        _whole(head, "max_size"), head["eviction"], priority_exponent=head["priority_exponent"]
    )
    counts = ReplayCounts(
        **{item.name: _whole(head["counts"], item.name) for item in fields(ReplayCounts)}
    )
    buffer.restore(_entries(lines, digest), head["generator"], counts)
    if len(buffer) != head["size"] or len(buffer) != counts.added - counts.evicted:
        raise ValueError(f"{len(buffer)} entries where {head['size']} are announced")
    return buffer


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
        number = _whole(entry, "number")
        yield number, StreamSample.from_dict({k: v for k, v in entry.items() if k != "number"})
    raise ValueError("its end is missing")


def _whole(values: dict[str, Any], name: str) -> int:
    value: int = values[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return value
