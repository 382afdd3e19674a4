"""How a model that was fine-tuned to rewrite questions is asked: in training and in use alike."""

from __future__ import annotations

from query_mutator.models.calls import Message

TUNED_INSTRUCTION = "Ask this clearly."


def tuned_messages(question: str) -> tuple[Message, ...]:
    """The chat that asks a tuned model for a rewrite."""
    return (
        {"role": "system", "content": TUNED_INSTRUCTION},
        {"role": "user", "content": question},
    )
