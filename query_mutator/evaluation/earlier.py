"""An evaluation that was made before: its figures, and the questions that it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.stored import stored_as
from query_mutator.data import Question, sample_questions
from query_mutator.evaluation.command import FIGURES
from query_mutator.evaluation.measuring import UNCHANGED, Measured, fingerprint
from query_mutator.evaluation.records import read_records
from query_mutator.runs.directory import RunDirectory


@dataclass(frozen=True)
class Earlier:
    """What an evaluation has left."""

    directory: Path
    figures: Mapping[str, Any]
    header: Any
    """The first line of its records."""
    measured: Sequence[Measured]
    """Every question that was asked, those of verdicts before this one too."""

    @property
    def sentence(self) -> str:
        """How it concluded."""
        verdict = self.figures.get("verdict")
        return str(verdict.get("sentence", "")) if isinstance(verdict, dict) else ""

    def count(self, name: str) -> int:
        """A count among the figures; `UserError` where there is none."""
        try:
            return stored_as(int, self.figures.get(name), name)
        except ValueError as error:
            raise UserError(f"{self.directory / FIGURES} is damaged: {error}") from error


def read_earlier(directory: Path) -> Earlier:
    """What the evaluation in a directory has left; `UserError` where it has not come to its end."""
    if not (directory / FIGURES).is_file():
        raise UserError(f"it has no {FIGURES}: it has not come to its end")
    header, measured = read_records(directory)
    return Earlier(
        directory, RunDirectory(directory).read_json(FIGURES), header, [*measured.values()]
    )


def of_the_verdict(
    questions: Sequence[Question], measured: Sequence[Measured], count: int
) -> list[Measured]:
    """Those of the measured questions that a verdict on so many of `questions` was made of.

    It was made of a sample, of which some may have failed; questions asked for an earlier verdict
    are kept beside them. `UserError` where they cannot be told.
    """
    exact = {one.sha256: one for one in measured}
    alike = {(one.id, one.question): one for one in measured}

    def record(question: Question) -> Measured | None:
        return exact.get(fingerprint(question)) or alike.get((question.id, question.question))

    known = {question.id: one for question in questions if (one := record(question))}
    for size in range(count, len(questions) + 1):
        sample = sample_questions(questions, size)
        found = [known[question.id] for question in sample if question.id in known]
        if found and len(found) == count:
            return found
    raise UserError(f"its records do not hold the {count} questions of its verdict")


def check_alike(measured: Sequence[Measured]) -> None:
    """Refuses records that do not all tell of the same ways of asking."""
    ways = {tuple(sorted(one.ways)) for one in measured}
    if len(ways) != 1 or UNCHANGED not in next(iter(ways)):
        raise UserError("its records are damaged: not every question was asked in the same ways")
