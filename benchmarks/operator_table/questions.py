"""Which questions a table asks, and in which order: any beginning of it is a fair sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from query_mutator.data import Question, Twin
from query_mutator.data.twins import CLEAR, MESSY
from query_mutator.evaluation.pairs import pair_of

SEED = 0


@dataclass(frozen=True)
class Wording:
    """A question in one of its wordings."""

    question: Question
    style: str
    """`clear`, or in which way it is messy."""


def wordings(questions: Sequence[Question], twins: Mapping[str, Twin]) -> list[Wording]:
    """Every question and its twin, shuffled, always in the same way.

    First comes one wording of each question, clear and messy in turn, then the other one: the
    first half tells of as many meanings as there are, and of both styles alike.
    """
    shuffled = list(questions)
    Random(SEED).shuffle(shuffled)
    first, second = [], []
    for place, question in enumerate(shuffled):
        if question.id not in twins:
            first.append(Wording(question, _style(question)))
            continue
        twin = twins[question.id]
        pair = pair_of(question, twin)
        clear = Wording(pair.clear, CLEAR)
        messy = Wording(pair.messy, _style(question) if twin.is_clear else twin.style)
        one, other = (messy, clear) if place % 2 else (clear, messy)
        first.append(one)
        second.append(other)
    return first + second


def _style(question: Question) -> str:
    """What its columns say of it."""
    style = str(question.columns.get("style") or "")
    return CLEAR if style.casefold() == CLEAR else str(question.columns.get("kind") or MESSY)
