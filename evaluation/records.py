"""Measured questions on disk, as they come in: an interrupted evaluation goes on from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluation.measuring import Measured

RECORDS = "records.jsonl"


class Records:
    """The measured questions of one evaluation; what belongs to another one is set aside."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self.path = directory / RECORDS
        self.measured: dict[str, Measured] = {}
        header = {"fingerprint": fingerprint}
        lines = self._whole_lines()
        if not lines or lines[0] != header:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write([header], "w")
            return
        for line in lines[1:]:
            try:
                measured = Measured.from_json(line)
            except (KeyError, TypeError, AttributeError):
                continue
            if not measured.failure:
                self.measured[measured.id] = measured
        # What was torn by an interruption, and what had failed, is measured again.
        self._write([header, *(one.to_json() for one in self.measured.values())], "w")

    def add(self, measured: Measured) -> None:
        """Keeps one more."""
        self.measured[measured.id] = measured
        self._write([measured.to_json()], "a")

    def _whole_lines(self) -> list[Any]:
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        lines = []
        for line in text.split("\n"):
            try:
                lines.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
        return lines

    def _write(self, lines: list[dict[str, Any]], mode: str) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        with self.path.open(mode, encoding="utf-8", errors="replace") as file:
            file.write(text)
