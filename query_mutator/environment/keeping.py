"""Which of two answers to a question to keep, told without the reference.

A small linear model looks at how the answer to a rewrite differs from the answer kept so far, and
says by how much its score will be higher. Every step that rewrote shows it a difference and what
it was worth, whichever answer was kept: it learns from all of them, and needs no trials.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from query_mutator.base.stored import stored_as
from query_mutator.environment.episodes import EpisodeState
from query_mutator.environment.features import answer_features
from query_mutator.models.encoders import Vectors
from query_mutator.models.flows import Encode
from query_mutator.operators import Operator, named_operators

Differences = tuple[float, ...]
"""How a new answer differs from the one kept so far: a number for each of `LOOKS_AT`."""

ON_POINT = "on_point"
LOOKS_AT = (
    ON_POINT,
    "on_point_as_typed",
    "disagreement",
    "words",
    "refusal",
    "cut",
    "distinct_words",
    "digits",
    "asks_back",
    "words_of_the_question",
    "rewritten",
)
PRIOR = {ON_POINT: 0.3}
"""What is held of a coefficient before anything was seen: nearer to the question is better."""
PRIOR_WEIGHT = 10.0
"""How many pairs of answers, with a difference of 1, the prior counts for."""
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Choice:
    """What stands after a rewrite."""

    state: EpisodeState
    kept: bool
    """Whether that is the rewrite with its answer; else it is undone, and counts as tried."""
    differences: Differences = ()
    """What was looked at; empty where there was nothing to choose."""


@dataclass(frozen=True)
class SavedKeeper:
    """What a keeper has learned, and from what; plain values."""

    looks_at: list[str]
    pairs: int
    gram: list[list[float]]
    moments: list[float]
    coefficients: list[float]


class Keeper:
    """Says which answer to keep; learns what the differences between two answers are worth.

    >>> keeper = Keeper()
    >>> keeper.expected_gain((0.1,) + (0.0,) * 10) > 0
    True
    """

    def __init__(self) -> None:
        size = len(LOOKS_AT)
        self._prior = np.array([PRIOR.get(name, 0.0) for name in LOOKS_AT])
        self._gram, self._moments = np.zeros((size, size)), np.zeros(size)
        self.pairs = 0
        """Pairs of answers that it has learned from."""
        self.coefficients = self._prior.copy()

    def expected_gain(self, differences: Differences) -> float:
        """How much higher the new answer will score than the one kept so far."""
        return float(self.coefficients @ np.array(differences))

    def learn(self, pairs: Iterable[tuple[Differences, float]]) -> None:
        """Takes in differences and what they were worth: a ridge regression on all seen so far.

        Sums are taken one by one, in order, so that they are the same to the bit wherever a run
        was interrupted.
        """
        before = self.pairs
        for differences, gain in pairs:
            row = np.array(differences)
            self._gram += np.outer(row, row)
            self._moments += row * gain
            self.pairs += 1
        if self.pairs > before:
            self.coefficients = np.linalg.solve(
                self._gram + PRIOR_WEIGHT * np.eye(len(LOOKS_AT)),
                self._moments + PRIOR_WEIGHT * self._prior,
            )

    def plain(self) -> dict[str, Any]:
        """All that it knows, as JSON has it."""
        saved = SavedKeeper(
            list(LOOKS_AT),
            self.pairs,
            self._gram.tolist(),
            self._moments.tolist(),
            self.coefficients.tolist(),
        )
        return asdict(saved)

    def take_up(self, plain: Any) -> None:
        """Goes on from what `plain` gave; raises ValueError for anything else."""
        saved = stored_as(SavedKeeper, plain)
        if tuple(saved.looks_at) != LOOKS_AT:
            raise ValueError("what is looked at to keep an answer is not what this version does")
        rows = [saved.moments, saved.coefficients, *saved.gram]
        size = len(LOOKS_AT)
        if len(saved.gram) != size or any(len(row) != size for row in rows) or saved.pairs < 0:
            raise ValueError("the numbers for keeping an answer are not as many as there must be")
        self.pairs = saved.pairs
        self._gram, self._moments = np.array(saved.gram), np.array(saved.moments)
        self.coefficients = np.array(saved.coefficients)


def keeper_of(plain: Any) -> Keeper:
    """The keeper that `plain` was given by; raises ValueError for anything else."""
    keeper = Keeper()
    keeper.take_up(plain)
    return keeper


async def kept_flow(keeper: Keeper | None, before: EpisodeState, after: EpisodeState) -> Choice:
    """What stands of a rewrite that led from `before` to `after`; without a keeper, all of it."""
    if keeper is None:
        return Choice(after, True)
    undone = replace(before, tried=after.tried, steps_left=after.steps_left)
    if after.answer == before.answer:
        return Choice(undone, False)
    tidied = _tidy().edit(before.original)
    texts = before.original, tidied, before.answer, after.answer
    differences = differences_of(before, after, tidied, await Encode(texts))
    if keeper.expected_gain(differences) > 0:
        return Choice(after, True, differences)
    return Choice(undone, False, differences)


@functools.cache
def _tidy() -> Operator:
    (tidy,) = named_operators(["tidy"])
    return tidy


def differences_of(
    before: EpisodeState, after: EpisodeState, tidied: str, vectors: Vectors
) -> Differences:
    """How two answers differ; `vectors` are of the question as typed and tidied, and of both."""
    as_typed, as_tidied, old, new = vectors
    changes = np.subtract(
        answer_features(after.answer, cut=after.answer_cut),
        answer_features(before.answer, cut=before.answer_cut),
    )
    repeated = _repeated(tidied, after.answer) - _repeated(tidied, before.answer)
    return (
        float(np.dot(as_tidied, new) - np.dot(as_tidied, old)),
        float(np.dot(as_typed, new) - np.dot(as_typed, old)),
        float(1.0 - np.dot(old, new)),
        *(float(change) for change in changes),
        repeated,
        1.0,
    )


def _repeated(question: str, answer: str) -> float:
    """The share of the question's words that the answer has."""
    asked = set(WORD.findall(question.casefold()))
    return len(asked & set(WORD.findall(answer.casefold()))) / max(1, len(asked))
