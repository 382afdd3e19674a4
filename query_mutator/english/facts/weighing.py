"""How probable it is that a mention is the answer, from the signs for and against it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """What each sign counts, in units of log odds."""

    bias: float
    threshold: float
    """The probability from which on a mention counts."""
    signs: Mapping[str, float]


def probability(signs: Mapping[str, float], weights: Weights) -> float:
    """How probable it is that a person would call the mention the answer.

    >>> probability({"first": 1.0}, Weights(-1.0, 0.5, {"first": 1.0}))
    0.5
    """
    odds = weights.bias + sum(weight * signs[name] for name, weight in weights.signs.items())
    return 1 / (1 + math.exp(-odds))
