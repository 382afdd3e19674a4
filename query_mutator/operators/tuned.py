"""How a model that was fine-tuned to rewrite questions is asked: in training and in use alike."""

from __future__ import annotations

from query_mutator.models.calls import Message
from query_mutator.models.tuned_mutator import TUNED_INSTRUCTION

__all__ = ["TUNED_INSTRUCTION", "tuned_messages"]


def tuned_messages(question: str) -> tuple[Message, ...]:
    """The chat that asks a tuned model for a rewrite."""
    return (
        {"role": "system", "content": TUNED_INSTRUCTION},
        {"role": "user", "content": question},
    )
