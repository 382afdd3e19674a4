"""What a tuned rewriter is asked, the same in training and in use."""

from __future__ import annotations

from query_mutator.models.calls import Message

TUNED_INSTRUCTION = "Ask this clearly."
"""Short, since it is read with every question. It stands in the place of the system prompt, where
chat templates would otherwise put one of their own."""


def tuned_messages(question: str) -> tuple[Message, ...]:
    """The chat that a tuned rewriter answers with the question as it should be asked.

    >>> [message["content"] for message in tuned_messages("wat is it")]
    ['Ask this clearly.', 'wat is it']
    """
    return (
        {"role": "system", "content": TUNED_INSTRUCTION},
        {"role": "user", "content": question},
    )
