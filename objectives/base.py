"""The words objectives are written in: a batch of answers, and scores made of terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Term:
    """One part of a score and the reason for it; it counts `weight` times."""

    value: float
    why: str = ""
    weight: float = 1.0


@dataclass(frozen=True)
class Score:
    """How good an answer is: the weighted sum of its terms.

    >>> Score({"facts": Term(1.0, "all found", 0.5), "drift": Term(0.2, "", -1.0)}).total
    0.3
    """

    terms: dict[str, Term]

    @property
    def total(self) -> float:
        return sum(term.weight * term.value for term in self.terms.values())


@dataclass(frozen=True)
class Weights:
    """How much each part counts; these are flags of the trainer."""

    facts: float = 0.5
    closeness: float = 0.5
    drift: float = 1.0
    drift_threshold: float = 0.2


@dataclass(frozen=True)
class Batch:
    """Answers to judge, a list for each column; `encode` turns texts into unit vectors."""

    questions: Sequence[str]
    """What was asked, in the user's words."""
    rewritten_questions: Sequence[str]
    """The question as rewritten, without the text of a template."""
    answers: Sequence[str]
    references: Sequence[str]
    key_facts: Sequence[tuple[tuple[str, ...], ...]]
    encode: Callable[[Sequence[str]], npt.NDArray[np.float32]]
    columns: Sequence[dict[str, Any]] = field(default_factory=list)
    """The other columns of the dataset, a dictionary for each row."""


Objective = Callable[[Batch], Sequence[Score]]


def cosines(left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]) -> list[float]:
    """The cosine of each pair of rows of unit length."""
    return [float(np.dot(a, b)) for a, b in zip(left, right, strict=True)]
