"""Labelled answers: reading them, and how well refusals are told on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import printable
from query_mutator.base.untrusted import DEEPEST, check_rows, parse_json, read_text

LABELS = ("refusal", "answer")
LABELLED = Path(__file__).parents[2] / "data" / "refusals"
"""The shipped ones."""
LONGEST_TEXT = 100_000


def read_labelled(files: Sequence[Path]) -> list[dict[str, Any]]:
    """The rows of JSONL files, with the file's name as `hand`; `UserError` names a bad line."""
    if not files:
        raise UserError("there are no files of labelled answers; name some")
    rows = []
    for file in files:
        text = read_text(file, "the labelled answers")
        check_rows(text, "the file of labelled answers", file)
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                rows.append({**_row(line, f"{file}, line {number}"), "hand": file.stem})
    if not rows:
        raise UserError(f"no labelled answers in {', '.join(map(str, files))}")
    return rows


def _row(line: str, place: str) -> dict[str, str]:
    try:
        row = parse_json(line, deepest=DEEPEST)
    except ValueError as error:
        why = "not valid JSON" if isinstance(error, json.JSONDecodeError) else error
        raise UserError(f"{place}: {why}") from error
    if not isinstance(row, dict) or "answer" not in row or row.get("label") not in LABELS:
        raise UserError(f"{place}: needs answer and label (refusal or answer)")
    texts = {name: row.get(name) for name in ("question", "answer", "kind")}
    return {"label": row["label"], **{name: _text(texts[name], name, place) for name in texts}}


def _text(value: Any, name: str, place: str) -> str:
    if value is None and name != "answer":
        return ""
    if not isinstance(value, str) or any(0xD800 <= ord(letter) <= 0xDFFF for letter in value):
        raise UserError(f"{place}: '{name}' is not text")
    if len(value) > LONGEST_TEXT:
        raise UserError(f"{place}: '{name}' is longer than {LONGEST_TEXT} characters")
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
