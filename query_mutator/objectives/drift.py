"""What every shipped objective takes off: the drift of a rewrite from what was asked."""

from __future__ import annotations

from collections.abc import Callable

from query_mutator.english import correct_spelling
from query_mutator.objectives.base import Batch, Score, Term, Weights, cosines


def drift_terms(batch: Batch, weights: Weights) -> list[Term]:
    """The cost of having moved away from the original question, beyond a threshold.

    The nearer of the question as typed and as it should be spelt counts: the embedding of a
    misspelt word is far from that of the word, and correcting it is no drift.
    """
    rewritten = batch.encode(batch.rewritten_questions)
    typed = cosines(batch.encode(batch.questions), rewritten)
    spelt = cosines(batch.encode([correct_spelling(text) for text in batch.questions]), rewritten)
    fidelity = map(max, typed, spelt)
    return [
        Term(
            max(0.0, (1.0 - cosine) - weights.drift_threshold),
            f"cosine of question and rewrite {cosine:.2f}, free above "
            f"{1 - weights.drift_threshold:.2f}",
            -weights.drift,
        )
        for cosine in fidelity
    ]


def drift_alone(weights: Weights) -> Callable[[Batch], list[Score]]:
    """Scores of nothing but drift: what an objective can tell whose other terms take calls."""
    return lambda batch: [Score({"drift": term}) for term in drift_terms(batch, weights)]
