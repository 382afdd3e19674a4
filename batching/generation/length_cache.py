"""The lengths of samples on disk: tokenised once, planned from as often as one likes.

The file is JSON lines: a header `{"tokenizer_hash": …, "version": 1}`, then one line for each
entry. It only ever grows. A sample that is added again is measured anew: its last line counts.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import index
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from batching.core.arrays import IntArray
from query_mutator.base.closing import Closing
from query_mutator.base.errors import UserError, refused
from query_mutator.base.files import BINARY, PARTIAL, sync
from query_mutator.base.locks import only_writer
from query_mutator.base.untrusted import open_file, parse_json

logger = logging.getLogger(__name__)

VERSION = 1
LONGEST = 2**40
"""The greatest length that is taken for one."""
BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 20
ENTRIES_AT_ONCE = 1 << 12
BEGIN = '{"sample_id": "'


@dataclass(frozen=True)
class LengthEntry:
    """The length of one sample, in tokens of one tokenizer."""

    sample_id: str
    length: int
    tokenizer_hash: str


@dataclass(eq=False)
class LengthCache(Closing):
    """Lengths by sample id, in a file that a kill does not harm.

    An entry is in the file as soon as `add` or `add_many` has returned. A last line that was torn
    by a kill is dropped when the file is opened again, and nothing else is.
    """

    path: Path
    tokenizer_hash: str
    dataset_hash: str
    """Of the data set that was measured; "" where nobody said."""
    _lengths: dict[str, int]
    _handle: int | None
    _taken: contextlib.ExitStack

    @classmethod
    def create(
        cls, path: str | Path, tokenizer_hash: str, *, dataset_hash: str = ""
    ) -> LengthCache:
        """An empty cache in a file that does not exist yet, open for writing."""
        path = Path(path)
        header: dict[str, Any] = {"tokenizer_hash": tokenizer_hash, "version": VERSION}
        if dataset_hash:
            header["dataset_hash"] = dataset_hash
        line = (json.dumps(header) + "\n").encode()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_first(path, line)
        except FileExistsError as error:
            raise UserError(
                f"{path} already exists; open it to go on, or choose another file"
            ) from error
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from error
        return cls.open(path)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        tokenizer_hash: str | None = None,
        dataset_hash: str | None = None,
        read_only: bool = False,
    ) -> LengthCache:
        """All entries of a file; further ones can be added unless it is `read_only`.

        `UserError` for a file of another kind, or of another tokenizer or data set than those
        named. Read only, the file may be one that another process is adding to.
        """
        path = Path(path)
        with contextlib.ExitStack() as taken:
            handle = None if read_only else _open_to_write(path, taken)
            header, lengths, whole_bytes, torn_bytes = _read(path)
            for name, wanted in (
                ("tokenizer_hash", tokenizer_hash),
                ("dataset_hash", dataset_hash),
            ):
                found = header.get(name, "")
                if wanted is not None and found != wanted:
                    raise UserError(
                        f"the lengths in {path} are of another {name.removesuffix('_hash')} "
                        f"({found[:12] or 'unnamed'}, not {wanted[:12]}); measure them again "
                        "into another file"
                    )
            if torn_bytes:
                logger.warning(
                    "%s: its last line is torn and left out (the process that wrote it was killed, "
                    "or is at work); %s entries are whole",
                    path,
                    f"{len(lengths):,}",
                )
            if handle is not None:
                _repair(handle, whole_bytes)
            own_hash, data_hash = header["tokenizer_hash"], header.get("dataset_hash", "")
            return cls(path, own_hash, data_hash, lengths, handle, taken.pop_all())

    def add(self, sample_id: str, length: int) -> None:
        """Adds one entry, or measures a known sample anew."""
        self.add_many([(sample_id, length)])

    def add_many(self, entries: Mapping[str, int] | Iterable[tuple[str, int]]) -> None:
        """Adds entries, many at once; those written before an error stay."""
        for ids, lengths in _blocks(entries):
            if min(lengths) < 0 or max(lengths) > LONGEST:
                raise ValueError(f"a length must be from 0 to {LONGEST}")
            self._write(_lines(ids, lengths, self.tokenizer_hash).encode())
            self._lengths.update(zip(ids, lengths, strict=True))

    def _write(self, data: bytes) -> None:
        if self._handle is None:
            raise ValueError(f"{self.path} is not open for writing")
        size = os.fstat(self._handle).st_size
        try:
            written = 0
            while written < len(data):
                written += os.write(self._handle, data[written:])
        except OSError as error:
            os.ftruncate(self._handle, size)
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def get(self, sample_id: str) -> int | None:
        """The length of a sample; None for an unknown one."""
        return self._lengths.get(sample_id)

    def lengths(self) -> Mapping[str, int]:
        """All lengths by id, in the order in which the ids were first added."""
        return MappingProxyType(self._lengths)

    def arrays(self) -> tuple[list[str], IntArray]:
        """All ids, and their lengths in the same order."""
        count = len(self._lengths)
        return list(self._lengths), np.fromiter(self._lengths.values(), np.int64, count)

    def ids(self) -> list[str]:
        """All ids, in the order in which they were first added."""
        return list(self._lengths)

    def entries(self) -> Iterator[LengthEntry]:
        """One entry for each sample."""
        for sample_id, length in self._lengths.items():
            yield LengthEntry(sample_id, length, self.tokenizer_hash)

    def __contains__(self, sample_id: object) -> bool:
        return sample_id in self._lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def close(self) -> None:
        """Has what was added reach the disk, and gives the file free for another writer."""
        if self._handle is not None:
            try:
                os.fsync(self._handle)
            finally:
                self._handle = None
                self._taken.close()


def _write_first(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all; `FileExistsError` where there is one."""
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never takes the place of what another process has put there.
        os.link(partial, path)
    finally:
        os.unlink(partial)
    sync(path.parent)


def _blocks(
    entries: Mapping[str, int] | Iterable[tuple[str, int]],
) -> Iterator[tuple[list[str], list[int]]]:
    """Ids and lengths, some thousands at once."""
    if isinstance(entries, Mapping):
        names, lengths = iter(entries), iter(entries.values())
        while ids := list(islice(names, ENTRIES_AT_ONCE)):
            yield ids, list(map(index, islice(lengths, ENTRIES_AT_ONCE)))
        return
    pairs = iter(entries)
    while block := list(islice(pairs, ENTRIES_AT_ONCE)):
        yield [sample_id for sample_id, _ in block], [index(length) for _, length in block]


def _lines(ids: list[str], lengths: list[int], tokenizer_hash: str) -> str:
    """The entries as JSON lines."""
    together = "".join(ids)
    if '"' in together or "\\" in together or not together.isprintable():
        ids = [_escaped(sample_id) for sample_id in ids]
    middle = _middle(tokenizer_hash)
    lines = [
        f"{BEGIN}{sample_id}{middle}{length}}}\n"
        for sample_id, length in zip(ids, lengths, strict=True)
    ]
    return "".join(lines)


def _middle(tokenizer_hash: str) -> str:
    """What stands between the id and the length."""
    return f'", "tokenizer_hash": {json.dumps(tokenizer_hash)}, "length": '


def _escaped(sample_id: str) -> str:
    plain = '"' not in sample_id and "\\" not in sample_id and sample_id.isprintable()
    return sample_id if plain else json.dumps(sample_id)[1:-1]


def _own_lines(block: bytes, tokenizer_hash: str) -> tuple[list[str], list[int]]:
    """The entries of lines that `_lines` wrote, read in a fifth of the time that JSON takes.

    `ValueError` for any others: what is cut apart here must give the same lines again.
    """
    text = block.decode()
    middle = _middle(tokenizer_hash)
    fields = text[len(BEGIN) : -1].replace("}\n" + BEGIN, "\n").replace(middle, "\n").split("\n")
    ids, lengths = fields[::2], list(map(int, fields[1::2]))
    if "\\" in text:
        ids = [json.loads(f'"{name}"') if "\\" in name else name for name in ids]
    if min(lengths, default=0) < 0 or max(lengths, default=0) > LONGEST:
        raise ValueError("lengths that are none")
    if _lines(ids, lengths, tokenizer_hash) != text + "\n":
        raise ValueError("not in the form of our own lines")
    return ids, lengths


def _open_to_write(path: Path, taken: contextlib.ExitStack) -> int:
    open_file(path, "the length cache").close()
    with refused(f"cannot add to the length cache {path}"):
        taken.enter_context(only_writer(path.resolve()))
        handle = os.open(path, os.O_RDWR | os.O_APPEND | BINARY)
    taken.callback(os.close, handle)
    return handle


def _read(path: Path) -> tuple[dict[str, Any], dict[str, int], int, int]:
    """The header, the lengths, and how many bytes of the file are whole lines, and torn."""
    lengths: dict[str, int] = {}
    with open_file(path, "the length cache") as file:
        header = _header(file.readline(LONGEST_LINE), path)
        whole_bytes = file.tell()
        line_number, rest = 2, b""
        while data := file.read(BLOCK_BYTES):
            block, newline, rest = (rest + data).rpartition(b"\n")
            if len(rest) > LONGEST_LINE:
                raise UserError(f"{path} has a line of more than {LONGEST_LINE} bytes")
            if newline:
                lengths.update(_block(block, path, line_number, header))
                line_number += block.count(b"\n") + 1
                whole_bytes += len(block) + 1
        if rest:
            try:
                lengths.update([_entry(rest, header)])
                whole_bytes, rest = whole_bytes + len(rest), b""
            except ValueError:
                pass  # torn by a kill
    return header, lengths, whole_bytes, len(rest)


def _header(line: bytes, path: Path) -> dict[str, Any]:
    """The first line of a cache; `UserError` for that of any other file."""
    try:
        header = parse_json(line, deepest=2)
    except ValueError:
        header = None
    if (
        not line.endswith(b"\n")
        or not isinstance(header, dict)
        or not isinstance(header.get("tokenizer_hash"), str)
        or not isinstance(header.get("dataset_hash", ""), str)
        or type(header.get("version")) is not int
    ):
        raise UserError(
            f"{path} is no length cache, or no more than the beginning of one; "
            "measure the lengths into another file, or delete it first"
        )
    if header["version"] != VERSION:
        raise UserError(
            f"{path} is a length cache of version {header['version']}; this program reads "
            f"version {VERSION}: measure the lengths into another file"
        )
    return header


def _block(
    block: bytes, path: Path, line_number: int, header: dict[str, Any]
) -> Iterable[tuple[str, int]]:
    """The entries of whole lines."""
    try:
        return zip(*_own_lines(block, header["tokenizer_hash"]), strict=True)
    except ValueError:
        pass
    entries = []
    for number, line in enumerate(block.split(b"\n"), line_number):
        try:
            entries.append(_entry(line, header))
        except ValueError as error:
            raise UserError(
                f"{path}, line {number} is damaged: {error}; delete the line, and measure again "
                "what it was about"
            ) from error
    return entries


def _entry(line: bytes, header: dict[str, Any]) -> tuple[str, int]:
    """One entry of any JSON form."""
    entry = parse_json(line, deepest=2)
    if not isinstance(entry, dict):
        raise ValueError("not an object")
    sample_id, length = entry.get("sample_id"), entry.get("length")
    if not isinstance(sample_id, str):
        raise ValueError("no sample_id")
    if type(length) is not int or not 0 <= length <= LONGEST:
        raise ValueError("no length")
    if entry.get("tokenizer_hash", header["tokenizer_hash"]) != header["tokenizer_hash"]:
        raise ValueError("it is of another tokenizer")
    return sample_id, length


def _repair(handle: int, whole_bytes: int) -> None:
    """Cuts off a torn last line; ends a whole one that lacks its line break."""
    if os.fstat(handle).st_size > whole_bytes:
        os.ftruncate(handle, whole_bytes)
    os.lseek(handle, whole_bytes - 1, os.SEEK_SET)
    if os.read(handle, 1) != b"\n":
        os.write(handle, b"\n")
