"""Measured questions on disk, as they come in: an interrupted evaluation goes on from them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from query_mutator.base.stored import stored_as
from query_mutator.base.untrusted import DEEPEST, parse_json, read_lines
from query_mutator.evaluation.measuring import Measured

RECORDS = "records.jsonl"
OLDER = "records-{}.jsonl"


class Records:
    """The measured questions of one evaluation, by fingerprint; those of another are set aside."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self.path = directory / RECORDS
        self.measured: dict[str, Measured] = {}
        header = {"fingerprint": fingerprint}
        lines = _whole_lines(self.path) if self.path.exists() else []
        if not lines or lines[0] != header:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.path.exists():
                before = lines[0] if lines and isinstance(lines[0], dict) else {}
                older = str(before.get("fingerprint", ""))[:8] or "damaged"
                self.path.replace(directory / OLDER.format(older))
            self._write([header])
            return
        self.measured = _measured(lines[1:])
        # What was torn by an interruption, and what had failed, is measured again.
        self._write([header, *(one.to_json() for one in self.measured.values())])

    def add(self, measured: Measured) -> None:
        """Keeps one more."""
        self.measured[measured.sha256] = measured
        with self.path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(json_lines([measured.to_json()]))

    def _write(self, lines: list[dict[str, Any]]) -> None:
        """Writes the file whole or not at all."""
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json_lines(lines), encoding="utf-8", errors="replace")
        os.replace(temporary, self.path)


def read_records(directory: Path) -> tuple[Any, dict[str, Measured]]:
    """The first line of the records of an evaluation, and its questions that did not fail."""
    lines = _whole_lines(directory / RECORDS)
    return (lines[0], _measured(lines[1:])) if lines else ({}, {})


def json_lines(records: Iterable[dict[str, Any]]) -> str:
    """The records as a file holds them."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _whole_lines(path: Path) -> list[Any]:
    lines = []
    for line in read_lines(path, "the records"):
        try:
            lines.append(parse_json(line.decode("utf-8", "replace"), deepest=DEEPEST))
        except ValueError:
            continue
    return lines


def _measured(lines: Iterable[Any]) -> dict[str, Measured]:
    found = {}
    for line in lines:
        try:
            measured = stored_as(Measured, line)
        except ValueError:
            continue
        if not measured.failure:
            found[measured.sha256] = measured
    return found
