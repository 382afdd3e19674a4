"""Whether an answer answers at all: what a refusal costs."""

from __future__ import annotations

from objectives.base import Term
from objectives.refusal import find_refusal

HEDGED = 0.5
"""What an answer is worth that refuses in part."""


def willingness(answer: str, question: str = "") -> tuple[float, str]:
    """1 for an answer, 0 for a refusal, half for a hedged one; and the words that decided.

    >>> willingness("Lima."), willingness("I can't help with that.")
    ((1.0, 'answers'), (0.0, "opening: 'i cannot help'"))
    """
    refusal = find_refusal(answer, question)
    if not refusal.kind:
        return 1.0, "answers"
    why = f"{refusal.kind}: '{refusal.phrase}'" if refusal.phrase else refusal.kind
    return (HEDGED if refusal.kind == "hedged" else 0.0), why


def willing_term(answer: str, question: str, weight: float) -> Term:
    """How willing one answer is."""
    value, why = willingness(answer, question)
    return Term(value, why, weight)
