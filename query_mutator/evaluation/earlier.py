"""An evaluation that was made before: its figures, and the questions that it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.stored import stored_as
from query_mutator.data import Question, Twin, sample_questions
from query_mutator.evaluation.concluding import FIGURES
from query_mutator.evaluation.measuring import UNCHANGED, Measured, fingerprint
from query_mutator.evaluation.pairs import Pair, choose_pairs
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
        return self._count(self.figures.get(name), name)

    @property
    def pairs(self) -> int:
        """How many pairs of a clear and a messy wording it has measured."""
        gap = self.figures.get("gap")
        return self._count(gap.get("pairs"), "pairs") if isinstance(gap, dict) else 0

    def _count(self, value: Any, name: str) -> int:
        try:
            return stored_as(int, value, name)
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


class Asked:
    """The measured questions of an evaluation, to be found by what was asked."""

    def __init__(self, measured: Sequence[Measured]) -> None:
        self._exact = {one.sha256: one for one in measured}
        self._alike = {(one.id, one.question): one for one in measured}

    def find(self, question: Question) -> Measured | None:
        """What was measured of a question; something else of its row may have changed since."""
        alike = self._alike.get((question.id, question.question))
        return self._exact.get(fingerprint(question)) or alike

    def of_the_verdict(self, questions: Sequence[Question], count: int) -> list[Measured]:
        """Those that a verdict on so many of `questions` was made of; `UserError` if not known.

        It was made of a sample, of which some may have failed; questions asked for an earlier
        verdict are kept beside them.
        """
        known = {question.id: one for question in questions if (one := self.find(question))}
        for size in range(count, len(questions) + 1):
            sample = sample_questions(questions, size)
            found = [known[question.id] for question in sample if question.id in known]
            if found and len(found) == count:
                return found
        raise UserError(f"its records do not hold the {count} questions of its verdict")

    def pairs_of_the_verdict(
        self, heldout: Sequence[Question], twins: Mapping[str, Twin], count: int
    ) -> list[Pair]:
        """The pairs of clear and messy wordings beside them, in the same way."""
        for most in range(count, len(heldout) + 1):
            pairs = choose_pairs(heldout, twins, most=most, asked=0)
            found = [pair for pair in pairs if self.find(pair.clear) and self.find(pair.messy)]
            if len(found) == count:
                return found
        raise UserError(f"its records do not hold the {count} pairs of its verdict")


def check_alike(heldout: Sequence[Measured], training: Sequence[Measured]) -> None:
    """Refuses records of which not all tell of the same ways of asking."""
    ways = {tuple(sorted(one.ways)) for one in (*heldout, *training)}
    contenders = {tuple(one.contenders) for one in heldout}
    unlike = len(ways) != 1 or UNCHANGED not in next(iter(ways)) or len(contenders) != 1
    if unlike or not all(one.policy for one in heldout):
        raise UserError("its records are damaged: not every question was asked in the same ways")
