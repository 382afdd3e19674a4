"""Made-up rows for tables of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.operator_table.rows import Row, TableFile
from query_mutator.evaluation.measuring import UNCHANGED, Tried


def tried(score: float, facts: float | None = None, prompt: str = "other words") -> Tried:
    """An answer that was scored so; without facts where the question has none."""
    terms = {} if facts is None else {"facts": {"value": facts, "why": "", "weight": 0.5}}
    return Tried(score, terms, prompt, prompt, "An answer.", [], 1, 0, 0.1)


def row(
    number: int,
    scores: Mapping[str, float],
    *,
    split: str = "train",
    style: str = "clear",
    observation: Sequence[float] = (0.0, 0.0),
) -> Row:
    """A question that unchanged is worth 0.5, and what it is worth otherwise."""
    ways = {UNCHANGED: tried(0.5, 0.5)} | {
        name: tried(score, score) for name, score in scores.items()
    }
    named = f"question {number}"
    return Row(named, named, split, style, "sums", named, "0" * 64, ways, list(observation))


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    """The rows as a table on disk."""
    file = TableFile(path, {"made": "up"})
    for one in rows:
        file.add(one)
    return path
