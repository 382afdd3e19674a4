"""The rows of a table of operators on disk: written as they come, so that it can go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.base.errors import UserError, refused
from query_mutator.base.files import append, size_of, write_atomically
from query_mutator.base.stored import stored_as
from query_mutator.base.untrusted import DEEPEST, parse_json, read_lines
from query_mutator.data.twins import CLEAR
from query_mutator.evaluation.measuring import UNCHANGED, Tried

FORMAT = 1
KIND = "operator table"
NO_TABLE = "is not a table of operators (python -m benchmarks.operator_table makes them)"


@dataclass(frozen=True)
class Row:
    """A question, what came of it in every way, and what a policy sees before it decides."""

    id: str
    meaning: str
    split: str
    style: str
    """`clear`, or in which way the question is messy."""
    category: str
    question: str
    sha256: str
    """Of all that is known of the question."""
    ways: dict[str, Tried]
    """Unchanged, and by each operator alone."""
    observation: list[float]

    @property
    def is_clear(self) -> bool:
        return self.style == CLEAR


@dataclass(frozen=True)
class Rows:
    """What a table holds: under which conditions it was made, and its rows."""

    conditions: dict[str, Any]
    rows: list[Row]

    @property
    def operators(self) -> list[str]:
        """The names of the operators, in the order of their actions."""
        return [name for name in self.rows[0].ways if name != UNCHANGED] if self.rows else []

    def gains(self) -> npt.NDArray[np.float64]:
        """What every operator gained on every question: a row for each question."""
        found = [
            [row.ways[name].score - row.ways[UNCHANGED].score for name in self.operators]
            for row in self.rows
        ]
        return np.array(found).reshape(len(self.rows), -1)

    def of(self, split: str) -> Rows:
        """The rows of one split."""
        return Rows(self.conditions, [row for row in self.rows if row.split == split])


def read_table(path: Path) -> Rows:
    """A table as it is on disk, the last row left out where it was not written whole."""
    lines = [line for line in read_lines(path, "the table") if line.endswith(b"\n")]
    header = _header(lines[0] if lines else b"", path)
    rows, ways = [], None
    for number, line in enumerate(lines[1:], 2):
        try:
            row = stored_as(Row, parse_json(line, deepest=DEEPEST))
            if ways not in (None, list(row.ways)) or UNCHANGED not in row.ways:
                raise ValueError("it was asked in other ways than the rows before")
        except ValueError as error:
            raise UserError(
                f"{path}: line {number} is not a row ({error}); take the line out and go on"
            ) from error
        ways = list(row.ways)
        rows.append(row)
    return Rows(header["conditions"], rows)


def _header(line: bytes, path: Path) -> dict[str, Any]:
    try:
        header = parse_json(line, deepest=DEEPEST)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise UserError(f"{path} {NO_TABLE}")
    if header.get("format") != FORMAT or not isinstance(header.get("conditions"), dict):
        raise UserError(f"{path} is a table of another version: make it anew")
    return header


class TableFile:
    """A table that is being made, by its only writer; rows that are there are kept."""

    def __init__(self, path: Path, conditions: Mapping[str, Any]) -> None:
        self.path = path
        self.conditions = json.loads(json.dumps(conditions))
        self.rows: dict[str, Row] = {}
        if not size_of(path):
            self._write()
            return
        table = read_table(path)
        self._check(table.conditions)
        self.rows = {row.id: row for row in table.rows}
        if len(self.rows) < len(table.rows):
            raise UserError(f"{path} has a question twice: make it anew")
        # A row that was torn by a kill ends here: the next one is written over it.
        self._size = size_of(path) - _torn(path)

    def add(self, row: Row) -> None:
        """Keeps one more row, which is on disk as a whole or not at all."""
        self._size = append(self.path, _line(asdict(row)), at=self._size)
        self.rows[row.id] = row

    def drop(self, ids: Sequence[str]) -> None:
        """Leaves out rows that are to be made anew."""
        if ids:
            self.rows = {key: row for key, row in self.rows.items() if key not in set(ids)}
            self._write()

    def sort(self, order: Sequence[str]) -> None:
        """Puts the rows in the order of these ids, however the answers had come in."""
        places = {key: place for place, key in enumerate(order)}
        ids = sorted(self.rows, key=lambda key: places.get(key, len(places)))
        if ids != list(self.rows):
            self.rows = {key: self.rows[key] for key in ids}
            self._write()

    def table(self) -> Rows:
        """The table as it stands."""
        return Rows(self.conditions, list(self.rows.values()))

    def _check(self, found: Mapping[str, Any]) -> None:
        keys = self.conditions.keys() | found.keys()
        other = sorted(key for key in keys if self.conditions.get(key) != found.get(key))
        if other:
            raise UserError(
                f"{self.path} was made with other {' and '.join(other)}; its rows and these do "
                "not compare.\nName another file by --output, or give the flags it was made with"
            )

    def _write(self) -> None:
        header = {"kind": KIND, "format": FORMAT, "conditions": self.conditions}
        content = _line(header) + b"".join(_line(asdict(row)) for row in self.rows.values())
        with refused(f"cannot write {self.path}"):
            write_atomically(self.path, lambda file: file.write(content))
        self._size = len(content)


def _torn(path: Path) -> int:
    """How many bytes stand after the last whole line."""
    with path.open("rb") as file:
        *_, last = file
    return 0 if last.endswith(b"\n") else len(last)


def _line(value: Any) -> bytes:
    # Half a character of a torn answer cannot be written as UTF-8.
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "replace")
