"""Reads questions from JSONL or CSV, telling bad rows by their line number."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import counted
from query_mutator.base.untrusted import DEEPEST, check_rows, parse_json, read_text

logger = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_FILE = Path(__file__).with_name("questions.jsonl")
SPLITS = {"train": "train", "heldout": "heldout", "held-out": "heldout", "test": "heldout"}
HELDOUT_SHARE = 0.3
BAD_ROWS_SHOWN = 3
KEYS_SHOWN = 10
LONGEST_SHOWN = 200
MAX_QUESTION_CHARACTERS = 4000
MAX_REFERENCE_CHARACTERS = 100_000
SAFE, UNSAFE = "safe", "unsafe"
UNSAFE_TYPE = "contrast_"
"""How XSTest begins the type of its unsafe rows, where a copy of it has no label."""


@dataclass(frozen=True)
class Question:
    """A question with its reference answer and the facts that a right answer must contain."""

    id: str
    question: str
    reference: str = ""
    """A right answer; objectives that need none do without."""
    category: str = "uncategorised"
    split: str = "train"
    meaning: str = ""
    """What is asked, whatever the wording: rows that share it are on the same side of the split."""
    key_facts: tuple[tuple[str, ...], ...] = ()
    """Each fact is a tuple of alternatives, any of which counts."""
    columns: dict[str, Any] = field(default_factory=dict, compare=False)
    """Whatever else the row holds: objectives may read it."""


def load_questions(path: str | Path | None = None) -> list[Question]:
    """All questions of a file, or the shipped ones; raises `UserError` naming the bad lines."""
    file = Path(path) if path else DEFAULT_FILE
    questions: list[Question] = []
    problems: list[str] = []
    first_line: dict[str, int] = {}
    split_of: dict[str, str] = {}
    rows, left_out = _safe_rows(list(rows_of(file)))
    for line, row in rows:
        try:
            question = _question(line, row)
        except ValueError as error:
            problems.append(f"line {line}: {error}")
            continue
        if question.id in first_line:
            problems.append(
                f"line {line}: id '{question.id}' is already on line {first_line[question.id]}"
            )
            continue
        first_line[question.id] = line
        if split_of.setdefault(question.meaning, question.split) != question.split:
            problems.append(
                f"line {line}: meaning '{question.meaning}' is both trained on and held out"
            )
            continue
        questions.append(question)
    if problems:
        shown = "; ".join(problems[:BAD_ROWS_SHOWN])
        more = f"; and {len(problems) - BAD_ROWS_SHOWN} more" if len(problems) > 3 else ""
        raise UserError(f"{file} has bad rows. {shown}{more}")
    if not questions:
        what = "only rows labelled unsafe" if left_out else "no questions"
        raise UserError(f"{file} holds {what} (JSONL or CSV with question and reference)")
    if left_out:
        logger.warning("%s: %s not labelled safe left out", file.name, counted(left_out, "row"))
    return questions


def split_questions(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """The questions to train on and those held out."""
    train = [question for question in questions if question.split == "train"]
    heldout = [question for question in questions if question.split == "heldout"]
    return train, heldout


def sample_questions(questions: Sequence[T], count: int | None) -> list[T]:
    """So many of the questions (or of their pairs), all for None; a larger sample holds the
    smaller ones."""
    if count is None or count >= len(questions):
        return list(questions)
    shuffled = list(questions)
    random.Random(0).shuffle(shuffled)
    return shuffled[:count]


def _safe_rows(rows: list[tuple[int, Any]]) -> tuple[list[tuple[int, Any]], int]:
    """The rows that may be used, and how many are left out.

    A file whose rows are labelled safe or unsafe, as XSTest's, gives its safe ones alone: a row of
    it that says neither is left out too.
    """
    labels = [_lower(row, "label") for _, row in rows]
    if {SAFE, UNSAFE} & set(labels):
        # What is not a row at all is told by its line, like any bad row.
        usable = [
            label == SAFE or not isinstance(row, dict)
            for label, (_, row) in zip(labels, rows, strict=True)
        ]
    else:
        usable = [not _lower(row, "type").startswith(UNSAFE_TYPE) for _, row in rows]
    kept = [row for row, use in zip(rows, usable, strict=True) if use]
    return kept, len(rows) - len(kept)


def _lower(row: Any, key: str) -> str:
    return str(row.get(key) or "").strip().casefold() if isinstance(row, dict) else ""


def rows_of(file: Path) -> Iterator[tuple[int, Any]]:
    """The rows of a file by line; in place of one that cannot be read, the error that says why."""
    text = read_text(file, "the dataset")
    is_table = file.suffix.lower() == ".csv"
    check_rows(text, "the dataset", file, between="," if is_table else "")
    if is_table:
        yield from _csv_rows(file, text)
        return
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            yield line, _json_row(content)


def _json_row(content: str) -> Any:
    """The row, or the error that says why there is none."""
    try:
        return parse_json(content, deepest=DEEPEST)
    except json.JSONDecodeError:
        return ValueError("not valid JSON")
    except ValueError as error:
        return error


def _csv_rows(file: Path, text: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            yield reader.line_num, {key: value for key, value in row.items() if key and value}
    except csv.Error as error:
        raise UserError(f"{file}, line {reader.line_num}: not valid CSV: {error}") from error


def _question(line: int, row: Any) -> Question:
    if isinstance(row, ValueError):
        raise row
    if not isinstance(row, dict):
        raise ValueError("not an object with question and reference")
    if "question" not in row and "prompt" in row:
        row = {"question": row["prompt"], "category": row.get("type"), **row}
    question = text_in(row, "question", required=True)
    identity = text_in(row, "id") or f"line-{line}"
    split = text_in(row, "split").casefold()
    if split and split not in SPLITS:
        raise ValueError(f"split '{split}' is neither train nor heldout")
    meaning = text_in(row, "meaning") or " ".join(question.casefold().split())
    known = {"id", "question", "reference", "category", "split", "meaning", "key_facts"}
    return Question(
        id=identity,
        question=question,
        reference=text_in(row, "reference", longest=MAX_REFERENCE_CHARACTERS),
        category=text_in(row, "category") or "uncategorised",
        split=SPLITS[split] if split else _split_by_content(meaning),
        meaning=meaning,
        key_facts=_key_facts(row.get("key_facts")),
        columns={key: value for key, value in row.items() if key not in known},
    )


def text_in(
    row: dict[str, Any],
    key: str,
    *,
    required: bool = False,
    longest: int = MAX_QUESTION_CHARACTERS,
) -> str:
    """The text in a cell of a row, "" where there is none; `ValueError` for what is no text."""
    value = row.get(key)
    if value is None or value == "":
        if required:
            shown = ", ".join(list(row)[:KEYS_SHOWN])[:LONGEST_SHOWN]
            raise ValueError(f"no '{key}' (it has: {shown or 'nothing'})")
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value != value:
        raise ValueError(f"'{key}' is not text")
    text = str(value).strip()
    if len(text) > longest:
        raise ValueError(f"the {key} is longer than {longest} characters")
    if required and not text:
        raise ValueError(f"'{key}' is empty")
    if "\x00" in text or any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise ValueError(f"'{key}' holds characters that are not text")
    return text


def _split_by_content(meaning: str) -> str:
    """A split that stays the same when rows are added or moved."""
    digest = hashlib.sha256(meaning.encode()).digest()
    return "heldout" if digest[0] < HELDOUT_SHARE * 256 else "train"


def _key_facts(value: Any) -> tuple[tuple[str, ...], ...]:
    """Facts from JSON (lists of alternatives) or from a CSV cell (`Paris; 8|eight`)."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = [fact.split("|") for fact in value.split(";") if fact.strip()]
    if not isinstance(value, list):
        raise ValueError("'key_facts' is neither a list nor text such as: Paris; 8|eight")
    facts = []
    for fact in value:
        alternatives = [fact] if isinstance(fact, str) else fact
        if not isinstance(alternatives, list) or not all(
            isinstance(alternative, str) for alternative in alternatives
        ):
            raise ValueError("each of 'key_facts' must be a list of texts")
        cleaned = tuple(text.strip() for text in alternatives if text.strip())
        if not cleaned:
            raise ValueError("one of 'key_facts' holds no text")
        facts.append(cleaned)
    return tuple(facts)
