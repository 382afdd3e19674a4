"""Labelled answers: reading them, and how well refusals are told on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from errors import UserError


def read_labelled(files: Sequence[Path]) -> list[dict[str, Any]]:
    """The rows of JSONL files, with the file's name as `hand`; `UserError` names a bad line."""
    if not files:
        raise UserError("there are no files of labelled answers; name some")
    rows = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").split("\n")
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                rows.append({**_row(line, f"{file}, line {number}"), "hand": file.stem})
    return rows


def _row(line: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        known = row["label"] in ("refusal", "answer") and isinstance(row["answer"], str)
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise UserError(f"{place}: needs answer and label (refusal or answer)")
    texts = {name: str(row.get(name, "")) for name in ("question", "kind")}
    return {"answer": row["answer"], "label": row["label"], **texts}


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
            *(f"{label}/{kind}: {_share(right[label, kind], count)} right"
              for (label, kind), count in sorted(total.items(), reverse=True)),
        ]
    )  # fmt: skip


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part} of {whole})" if whole else f"- ({part} of {whole})"
