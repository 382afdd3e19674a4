"""Pairs and prompts as tokens, the same as a server makes of them."""

from __future__ import annotations

from typing import Any

from batching import Sample
from batching.generation import Tokenizer
from batching.generation.chats import LEARNED_ROLE, TURN_BEGINS, Part, Turn, chat_ml
from batching.generation.dataset import TextSample, encode_texts
from query_mutator.operators.tuned import tuned_messages
from query_mutator.tuning.pairs import Pair

WEIGHT = "weight"
QUESTION, REWRITE = "question", "rewrite"


class PromptWriter:
    """Writes pairs as the chats that the model knows."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def sample(self, name: str, pair: Pair) -> Sample:
        """A pair to train on: only the rewrite, and that it ends, count in the loss."""
        (sample,) = encode_texts([self._text(name, pair)], self.tokenizer)
        return Sample(*_to_last_learned(sample), meta={"sample_id": name, WEIGHT: pair.weight})

    def samples(self, pairs: list[Pair]) -> list[Sample]:
        """Many pairs, by their place in the list."""
        texts = [self._text(str(number), pair) for number, pair in enumerate(pairs)]
        return [
            Sample(*_to_last_learned(sample), meta={"sample_id": name, WEIGHT: pair.weight})
            for sample, pair in zip(encode_texts(texts, self.tokenizer), pairs, strict=True)
            for name in [sample.sample_id]
        ]

    def prompt(self, question: str) -> list[int]:
        """What the model is asked, up to where its turn begins."""
        sample = self.sample("", Pair(question, REWRITE))
        return list(sample.input_ids[: sample.loss_mask.index(1)])

    def completion(self, rewrite: str) -> list[int]:
        """What it is to answer, and the token that ends its turn."""
        sample = self.sample("", Pair(QUESTION, rewrite))
        return list(sample.input_ids[sample.loss_mask.index(1) :])

    @property
    def end_id(self) -> int:
        """The token that ends the model's turn."""
        return self.completion(REWRITE)[-1]

    def _text(self, name: str, pair: Pair) -> TextSample:
        asked = [Turn(turn["role"], turn["content"]) for turn in tuned_messages(pair.question)]
        turns = (*asked, Turn(LEARNED_ROLE, pair.rewrite))
        if self.tokenizer.chat is not None:
            return TextSample(name, chat_ml(turns), turns=turns)
        # llama.cpp writes ChatML for a model without a template, and stops at the token that ends
        # a text.
        parts = (
            *chat_ml(asked),
            Part(TURN_BEGINS, learned=False, is_mark=True),
            Part(f"{LEARNED_ROLE}\n", learned=False),
            Part(pair.rewrite),
        )
        return TextSample(name, parts)


def _to_last_learned(sample: Sample) -> tuple[Any, Any]:
    """Tokens and mask without what a template writes after the end of the last turn."""
    end = len(sample) - sample.loss_mask[::-1].index(1)
    return sample.input_ids[:end], sample.loss_mask[:end]
