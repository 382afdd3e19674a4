"""Pairs in files: those shipped beside the questions, and a user's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from batching.generation.rows import read_rows
from query_mutator.base.errors import UserError
from query_mutator.data.loading import BAD_ROWS_SHOWN, DEFAULT_FILE, text_in
from query_mutator.tuning.pairs import Pair

PAIRS_DIRECTORY = DEFAULT_FILE.with_name("pairs")
COLUMNS = (("typed", "meant"), ("question", "rewrite"), ("prompt", "completion"))
"""What the two sides of a pair may be called."""
LARGEST_WEIGHT = 1000.0


def read_pairs(path: str | Path) -> list[Pair]:
    """The pairs of a JSONL, CSV or Parquet file; `UserError` names the rows that are none."""
    file = Path(path)
    pairs: list[Pair] = []
    problems: list[str] = []
    for place, row in read_rows(file):
        try:
            pairs.append(_pair(row))
        except ValueError as error:
            problems.append(f"{place}: {error}")
    if problems:
        shown = "; ".join(problems[:BAD_ROWS_SHOWN])
        raise UserError(f"{file} has bad rows. {shown}")
    if not pairs:
        raise UserError(f"{file} holds no pairs: rows of {_columns_told()}")
    return pairs


def written_pairs(directory: Path = PAIRS_DIRECTORY) -> Iterator[Pair]:
    """The pairs of all files of a directory, in the order of their names; none where it is none."""
    for file in sorted(directory.glob("*.jsonl")):
        yield from read_pairs(file)


def _pair(row: Any) -> Pair:
    if not isinstance(row, dict):
        raise ValueError(f"not an object with {_columns_told()}")
    for question, rewrite in COLUMNS:
        if question in row and rewrite in row:
            return Pair(
                text_in(row, question, required=True),
                text_in(row, rewrite, required=True),
                meaning=text_in(row, "meaning"),
                weight=_weight(row.get("weight")),
                category=text_in(row, "category"),
            )
    raise ValueError(f"neither {_columns_told()} (it has: {', '.join(map(str, row))[:200]})")


def _weight(value: Any) -> float:
    try:
        weight = 1.0 if value in (None, "") else float(value)
    except (TypeError, ValueError):
        weight = -1.0
    if not 0 < weight <= LARGEST_WEIGHT:
        raise ValueError(f"'weight' is not a number above 0 and up to {LARGEST_WEIGHT:g}")
    return weight


def _columns_told() -> str:
    return " or ".join(f"{question} and {rewrite}" for question, rewrite in COLUMNS)
