"""A task on which nothing but the length of an answer counts, and keepers that are sure."""

from __future__ import annotations

import numpy as np

from query_mutator.environment.keeping import LOOKS_AT, Keeper
from query_mutator.objectives import Batch, Score, Term
from query_mutator.servers.simulated.answers import stable_hash

LONGEST = 40
CONSTANT = LOOKS_AT.index("rewritten")
OPERATOR = 1
"""The first operator, as an action."""


def of_any_length(model: str, system: str, prompt: str) -> str:
    """An answer whose length nothing but the prompt's own letters decides."""
    return "word " * (1 + stable_hash(prompt) % LONGEST)


def brevity(batch: Batch) -> list[Score]:
    return [Score({"brevity": Term(brevity_of(answer))}) for answer in batch.answers]


def brevity_of(answer: str) -> float:
    return 1 - len(answer.split()) / LONGEST


def determined(expected_gain: float) -> Keeper:
    """A keeper that expects the same of every new answer."""
    keeper = Keeper()
    keeper.coefficients = np.zeros(len(LOOKS_AT))
    keeper.coefficients[CONSTANT] = expected_gain
    return keeper
