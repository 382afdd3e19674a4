"""Which questions are asked both clearly and messily, and what has to be asked for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from query_mutator.base.errors import UserError
from query_mutator.data import Question, Twin, sample_questions
from query_mutator.data.twins import CLEAR, MESSY
from query_mutator.evaluation.measuring import Asking, Measured, fingerprint

SHARE = 0.1
"""Messy twins of clear questions that are asked in every way where nothing is said, as a share of
the questions that are: each costs as much as one of them."""


@dataclass(frozen=True)
class Pair:
    """A question of the dataset and its twin, by the way in which they are asked."""

    clear: Question
    messy: Question
    twin: str
    """Which of the two is the twin: `clear` or `messy`."""


def most_pairs(objective: str, wanted: int | None) -> int | None:
    """How many pairs to measure at most; None where it is left to `choose_pairs`.

    The judge compares an answer with that to the question unchanged, whichever way this is asked.
    """
    if objective != "judge":
        return wanted
    if wanted:
        raise UserError(
            "--twins: the objective judge scores answers against those to the question unchanged, "
            "so clear and messy questions do not compare: leave it out"
        )
    return 0


def choose_pairs(
    heldout: Sequence[Question],
    twins: Mapping[str, Twin],
    *,
    most: int | None,
    asked: int,
) -> list[Pair]:
    """The pairs to measure, so many at `most`; `asked` is how many questions are asked anyway.

    A messy question of the dataset is asked in every way as it is, so that its clear twin costs
    one call: these come first. By default they are all taken, with a few of the others.
    """
    found = [pair_of(question, twins[question.id]) for question in heldout if question.id in twins]
    cheap = [pair for pair in found if pair.twin == CLEAR]
    dear = [pair for pair in found if pair.twin == MESSY]
    if most is None:
        most = len(cheap) + int(SHARE * asked)
    cheap = sample_questions(cheap, most)
    return [*cheap, *sample_questions(dear, most - len(cheap))]


def pair_of(question: Question, twin: Twin) -> Pair:
    """A question and its twin, which is a question of its own with the same meaning."""
    style = CLEAR if twin.is_clear else MESSY
    columns = {**question.columns, "style": style}
    if "twin" in columns:
        columns["twin"] = question.question
    other = replace(question, id=f"{question.id}~{style}", question=twin.twin, columns=columns)
    clear, messy = (other, question) if twin.is_clear else (question, other)
    return Pair(clear, messy, style)


def twins_to_ask(pairs: Sequence[Pair], asking: Asking) -> list[tuple[Question, Asking]]:
    """The twins, each with the ways in which it is asked: a clear one unchanged alone."""
    unchanged = replace(asking, operators=(), policy=None, contenders=())
    return [
        (pair.clear, unchanged) if pair.twin == CLEAR else (pair.messy, asking) for pair in pairs
    ]


def measured_pairs(
    pairs: Sequence[Pair], measured: Mapping[str, Measured]
) -> list[tuple[Measured, Measured]]:
    """The clear and the messy wording of each pair, where both have been asked as they should."""
    found = []
    for pair in pairs:
        sides = [measured.get(fingerprint(question)) for question in (pair.clear, pair.messy)]
        clear, messy = sides
        if clear and messy and not clear.failure and not messy.failure:
            found.append((clear, messy))
    return found
