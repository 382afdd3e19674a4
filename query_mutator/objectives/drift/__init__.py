"""What every shipped objective takes off: the drift of a rewrite from what was asked."""

from __future__ import annotations

from collections.abc import Callable

from query_mutator.objectives.base import Batch, Score, Term, Weights
from query_mutator.objectives.drift.detector import CALIBRATED, Drift, shipped_detector

__all__ = ["CALIBRATED", "Drift", "drift_alone", "drift_terms", "find_drift"]


def drift_terms(batch: Batch, weights: Weights) -> list[Term]:
    """The cost of asking something else, beyond a threshold: 0 up to it, 1 where it is sure."""
    return [
        Term(cost(drift.value, weights.drift_threshold), drift.why, -weights.drift)
        for drift in find_drift(batch)
    ]


def drift_alone(weights: Weights) -> Callable[[Batch], list[Score]]:
    """Scores of nothing but drift: what an objective can tell whose other terms take calls."""
    return lambda batch: [Score({"drift": term}) for term in drift_terms(batch, weights)]


def find_drift(batch: Batch) -> list[Drift]:
    """How far each rewrite of a batch has drifted from its question, by the shipped weights."""
    return shipped_detector().find(batch.questions, batch.rewritten_questions, batch.encode)


def cost(drift: float, threshold: float) -> float:
    """What a drift costs: nothing up to the threshold, and evenly more from there.

    >>> cost(0.2, 0.2), cost(0.75, 0.5), cost(1.0, 0.2), cost(1.0, 1.5)
    (0.0, 0.5, 1.0, 0.0)
    """
    return 0.0 if drift <= threshold else (drift - threshold) / (1.0 - threshold)
