"""Questions and chats as tokens, the same as a server makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batching import Sample
from query_mutator.models.calls import Message
from query_mutator.operators.tuned import tuned_messages
from query_mutator.tuning.pairs import Pair

CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""The template that llama.cpp takes, too, where a model has none."""
WEIGHT = "weight"


class PromptWriter:
    """Writes chats as the model knows them."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._template = tokenizer.chat_template or CHATML
        self.eos_id: int = tokenizer.eos_token_id

    def prompt_text(self, messages: Sequence[Message]) -> str:
        """A chat up to where the model's turn begins."""
        text: str = self._tokenizer.apply_chat_template(
            [dict(message) for message in messages],
            chat_template=self._template,
            tokenize=False,
            add_generation_prompt=True,
        )
        return text

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The same as tokens."""
        return self._tokens(self.prompt_text(messages))

    def completion(self, text: str) -> list[int]:
        """What the model is to say, and the token that ends its turn."""
        # A server reads the prompt by itself: its last token never merges with the first of these.
        return [*self._tokens(text), self.eos_id]

    def sample(self, name: str, pair: Pair) -> Sample:
        """A pair to train on: only the rewrite counts in the loss."""
        prompt = self.prompt(tuned_messages(pair.question))
        completion = self.completion(pair.rewrite)
        return Sample(
            (*prompt, *completion),
            (0,) * len(prompt) + (1,) * len(completion),
            meta={"sample_id": name, WEIGHT: pair.weight},
        )

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False).input_ids
        return ids
