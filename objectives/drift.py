"""What every shipped objective takes off: the drift of a rewrite from what was asked."""

from __future__ import annotations

from objectives.base import Batch, Term, Weights, cosines


def drift_terms(batch: Batch, weights: Weights) -> list[Term]:
    """The cost of having moved away from the original question, beyond a threshold."""
    fidelity = cosines(batch.encode(batch.questions), batch.encode(batch.rewritten_questions))
    return [
        Term(
            max(0.0, (1.0 - cosine) - weights.drift_threshold),
            f"cosine of question and rewrite {cosine:.2f}, free above "
            f"{1 - weights.drift_threshold:.2f}",
            -weights.drift,
        )
        for cosine in fidelity
    ]
