"""The rows of a user's data set, one after the other: JSONL, CSV, Parquet or plain lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import DEEPEST, MOST_BYTES, open_file, parse_json, read_lines

WHAT = "the data set"
ROWS_AT_ONCE = 256
Row = Any
"""What a line holds: an object where the data set is as it should be."""


def read_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Each row of a file with where it stands ("line 3"), by the ending of the file's name.

    `UserError` names the line that cannot be read, or the endings that can.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        endings = f"{', '.join(list(READERS)[:-1])} or {list(READERS)[-1]}"
        raise UserError(f"{WHAT} {path} is neither {endings}, nor the folder of a run")
    return reader(path)


def _plain_lines(path: Path) -> Iterator[tuple[str, Row]]:
    for number, line in _decoded_lines(path):
        if line.strip():
            yield f"line {number}", {"text": line.rstrip("\r\n")}


def _json_rows(path: Path) -> Iterator[tuple[str, Row]]:
    for number, line in _decoded_lines(path):
        if line.strip():
            try:
                yield f"line {number}", parse_json(line, deepest=DEEPEST)
            except json.JSONDecodeError:
                raise UserError(f"{path}, line {number}: not valid JSON") from None
            except ValueError as error:
                raise UserError(f"{path}, line {number}: {error}") from error


def _csv_rows(path: Path) -> Iterator[tuple[str, Row]]:
    # The module's own bound, 131,072 characters, is below what a text may have.
    csv.field_size_limit(MOST_BYTES)
    reader = csv.DictReader((line for _, line in _decoded_lines(path)), strict=True)
    try:
        for row in reader:
            filled = {key: cell for key, cell in row.items() if key and cell}
            yield f"line {reader.line_num}", filled
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not valid CSV: {error}") from error


def _parquet_rows(path: Path) -> Iterator[tuple[str, Row]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise UserError(f"{path} needs pyarrow to be read: `pip install pyarrow`") from None
    number = 0
    with open_file(path, WHAT) as file:
        try:
            for batch in parquet.ParquetFile(file).iter_batches(batch_size=ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row
        except (ArrowException, OSError, UnicodeDecodeError) as error:
            why = str(error).splitlines()[0]
            raise UserError(f"{path}, after row {number}: not valid Parquet: {why}") from error


def _decoded_lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_lines(path, WHAT), 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}, line {number}: not UTF-8 text: {error.reason}") from error


READERS: dict[str, Callable[[Path], Iterator[tuple[str, Row]]]] = {
    ".jsonl": _json_rows,
    ".csv": _csv_rows,
    ".parquet": _parquet_rows,
    ".txt": _plain_lines,
}
