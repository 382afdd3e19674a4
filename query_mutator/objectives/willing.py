"""Whether an answer answers at all: what a refusal costs."""

from __future__ import annotations

from query_mutator.objectives.base import Batch, Term
from query_mutator.objectives.refusal import Refusal, find_refusals

HEDGED = 0.5
"""What an answer is worth that refuses in part."""


def willingness(refusal: Refusal) -> tuple[float, str]:
    """1 for an answer, 0 for a refusal, half for a hedged one; and the words that decided.

    >>> willingness(Refusal()), willingness(Refusal("opening", "i cannot help"))
    ((1.0, 'answers'), (0.0, "opening: 'i cannot help'"))
    """
    if not refusal.kind:
        return 1.0, "answers"
    why = f"{refusal.kind}: '{refusal.phrase}'" if refusal.phrase else refusal.kind
    return (HEDGED if refusal.kind == "hedged" else 0.0), why


def willing_terms(batch: Batch, weight: float) -> list[Term]:
    """How willing each answer is."""
    found = find_refusals(batch.questions, batch.answers, batch.encode)
    return [Term(*willingness(refusal), weight) for refusal in found]
