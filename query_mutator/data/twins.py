"""Twins: what a messy question means, clearly asked, or how people might type a clear one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.data.loading import BAD_ROWS_SHOWN, Question, rows_of, text_in

TWINS_FILE = Path(__file__).with_name("twins.jsonl")
CLEAR, MESSY = "clear", "messy"


@dataclass(frozen=True)
class Twin:
    """What a question reads like when it is asked the other way."""

    id: str
    """Of the question."""
    twin: str
    style: str
    """`clear` for the clear twin of a messy question, else in which way the twin is messy."""
    hand: str = ""
    """Who wrote it."""

    @property
    def is_clear(self) -> bool:
        return self.style == CLEAR


def load_twins(path: str | Path | None = None) -> dict[str, Twin]:
    """The shipped twins, or those of a file like it, by the id of their question."""
    file = Path(path) if path else TWINS_FILE
    found: dict[str, Twin] = {}
    problems = []
    for line, row in rows_of(file):
        try:
            twin = _twin(row)
            if twin.id in found:
                raise ValueError(f"'{twin.id}' has a twin already")
        except ValueError as error:
            problems.append(f"line {line}: {error}")
        else:
            found[twin.id] = twin
    if problems:
        raise UserError(f"{file} has bad rows. {'; '.join(problems[:BAD_ROWS_SHOWN])}")
    return found


def twins_of(questions: Sequence[Question], dataset: str | Path | None) -> dict[str, Twin]:
    """The twins of the questions of a dataset by id: of a user's own, what its columns say.

    There, `twin` is the question asked the other way, and `style` says which way the question
    itself is asked: `clear` or `messy`.
    """
    if dataset is None:
        return load_twins()
    found = {}
    for question in questions:
        try:
            twin = _twin_in_columns(question)
        except ValueError as error:
            raise UserError(f"{dataset}: question '{question.id}': {error}") from error
        if twin is not None:
            found[question.id] = twin
    return found


def _twin(row: object) -> Twin:
    if isinstance(row, ValueError):
        raise row
    if not isinstance(row, dict):
        raise ValueError("not an object with id, style and twin")
    identity, twin, style = (text_in(row, key, required=True) for key in ("id", "twin", "style"))
    return Twin(identity, twin, style, text_in(row, "hand"))


def _twin_in_columns(question: Question) -> Twin | None:
    twin = text_in(question.columns, "twin")
    if not twin:
        return None
    style = text_in(question.columns, "style").casefold()
    if style not in (CLEAR, MESSY):
        raise ValueError("it has a twin, but its style is neither clear nor messy: say which it is")
    if twin == question.question:
        raise ValueError("its twin is the question itself: give the other wording or none")
    return Twin(question.id, twin, MESSY if style == CLEAR else CLEAR)
