"""Which model plays which part, and under what limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from query_mutator.models.calls import Call, Message

MAX_TOKENS_VERDICT = 8
"""A judge is asked for a letter; a little more lets it say so in its own way."""


@dataclass(frozen=True)
class Roles:
    """The mutator, the target model and the judge, with the limits of their calls."""

    mutator_model: str
    target_model: str
    judge_model: str = ""
    """The model that compares answers; "" is the target model."""
    rewriter_model: str = ""
    """The mutator with weights that were tuned for rewriting; "" where there is none."""
    max_tokens_mutation: int = 64
    max_tokens_answer: int = 96
    temperature_mutation: float = 0.0
    temperature_answer: float = 0.0
    num_ctx: int = 2048
    seed: int = 0
    faithful: bool = True
    """Whether a rewrite that asks something else is refused before it is answered."""

    def mutation_call(
        self, messages: Sequence[Message], *, seed: int | None = None, tuned: bool = False
    ) -> Call:
        """The call that asks the mutator, or the one that was tuned for it, for a line of text."""
        return Call(
            purpose="mutation",
            model=self.rewriter_model if tuned else self.mutator_model,
            messages=tuple(messages),
            max_tokens=self.max_tokens_mutation,
            temperature=self.temperature_mutation,
            seed=self._seed(seed, self.temperature_mutation),
            num_ctx=self.num_ctx,
            stop=("\n",),
        )

    def answer_call(self, prompt: str, *, seed: int | None = None) -> Call:
        """The call that asks the target model."""
        return Call(
            purpose="answer",
            model=self.target_model,
            messages=({"role": "user", "content": prompt},),
            max_tokens=self.max_tokens_answer,
            temperature=self.temperature_answer,
            seed=self._seed(seed, self.temperature_answer),
            num_ctx=self.num_ctx,
        )

    def judge_call(self, prompt: str) -> Call:
        """The call that asks the judge for a verdict in a word; always at temperature 0."""
        return Call(
            purpose="judge",
            model=self.judge_model or self.target_model,
            messages=({"role": "user", "content": prompt},),
            max_tokens=MAX_TOKENS_VERDICT,
            num_ctx=self.num_ctx,
        )

    def without_sampling(self) -> Roles:
        """The same roles at temperature 0, so that every call has one answer, which is kept."""
        return replace(self, temperature_mutation=0.0, temperature_answer=0.0)

    def _seed(self, seed: int | None, temperature: float) -> int:
        """At temperature 0 a seed changes nothing: with 0, runs of any seed share their answers."""
        if temperature == 0:
            return 0
        return self.seed if seed is None else seed
