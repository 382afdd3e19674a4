"""What a good answer is. An objective is a batched function that returns scores with reasons."""

from query_mutator.objectives.base import (
    AnsweredQuestion,
    Batch,
    Evidence,
    Objective,
    Score,
    Term,
    Weights,
    as_objective,
)
from query_mutator.objectives.loading import OBJECTIVES, load_objective

__all__ = [
    "OBJECTIVES",
    "AnsweredQuestion",
    "Batch",
    "Evidence",
    "Objective",
    "Score",
    "Term",
    "Weights",
    "as_objective",
    "load_objective",
]
