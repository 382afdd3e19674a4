"""Labelled answers: reading them, and how well refusals are told on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command_line import printable
from errors import UserError

LABELS = ("refusal", "answer")


def read_labelled(files: Sequence[Path]) -> list[dict[str, Any]]:
    """The rows of JSONL files, with the file's name as `hand`; `UserError` names a bad line."""
    if not files:
        raise UserError("there are no files of labelled answers; name some")
    rows = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8-sig").split("\n")
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UserError(f"{file} is not UTF-8 text; save it as UTF-8") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                rows.append({**_row(line, f"{file}, line {number}"), "hand": file.stem})
    if not rows:
        raise UserError(f"no labelled answers in {', '.join(map(str, files))}")
    return rows


def _row(line: str, place: str) -> dict[str, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: not valid JSON") from error
    if not isinstance(row, dict) or "answer" not in row or row.get("label") not in LABELS:
        raise UserError(f"{place}: needs answer and label (refusal or answer)")
    texts = {name: row.get(name) for name in ("question", "answer", "kind")}
    return {"label": row["label"], **{name: _text(texts[name], name, place) for name in texts}}


def _text(value: Any, name: str, place: str) -> str:
    if value is None and name != "answer":
        return ""
    if not isinstance(value, str) or any(0xD800 <= ord(letter) <= 0xDFFF for letter in value):
        raise UserError(f"{place}: '{name}' is not text")
    return value


def report(rows: Sequence[dict[str, Any]], refused: Sequence[bool]) -> str:
    """Precision and recall with their counts, overall and by kind."""
    right: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for row, said in zip(rows, refused, strict=True):
        group = (row["label"], row["kind"])
        total[group] += 1
        right[group] += bool(said) == (row["label"] == "refusal")
    hits = sum(count for (label, _), count in right.items() if label == "refusal")
    refusals = sum(row["label"] == "refusal" for row in rows)
    return "\n".join(
        [
            f"precision {_share(hits, sum(map(bool, refused)))}",
            f"recall    {_share(hits, refusals)}",
            *(f"{label}/{printable(kind)}: {_share(right[label, kind], count)} right"
              for (label, kind), count in sorted(total.items(), reverse=True)),
        ]
    )  # fmt: skip


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part} of {whole})" if whole else f"- ({part} of {whole})"
