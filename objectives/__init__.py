"""What a good answer is. An objective is a batched function that returns scores with reasons."""

from objectives.base import Batch, Objective, Score, Term, Weights
from objectives.loading import OBJECTIVES, load_objective

__all__ = ["OBJECTIVES", "Batch", "Objective", "Score", "Term", "Weights", "load_objective"]
