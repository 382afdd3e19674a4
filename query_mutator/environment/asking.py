"""What is said to the models about one question: its rewrite by an operator, its answer."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from query_mutator.english import correct_spelling
from query_mutator.models.calls import Outcome
from query_mutator.models.encoders import Vectors
from query_mutator.models.flows import Encode
from query_mutator.models.roles import Roles
from query_mutator.operators import Operator

DEFAULT_REFUSAL = "I'm sorry, but I can't help with that."
"""What stands in for the answer of a target call that failed."""

MIN_FIDELITY = 0.6
"""Below this cosine a rewrite that should keep the meaning is not used."""


@dataclass(frozen=True)
class CallCost:
    """What a call took."""

    latency_s: float = 0.0
    """Time that was waited for it: 0 where it was remembered."""
    served_s: float = 0.0
    """Time that it took the server, also where that was long ago."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False

    @classmethod
    def of(cls, outcome: Outcome) -> CallCost:
        reply = outcome.reply
        return cls(
            outcome.latency_s,
            reply.served_s,
            reply.prompt_tokens,
            reply.completion_tokens,
            outcome.cached,
        )


@dataclass(frozen=True)
class Mutation:
    """A rewritten query. Where the call failed, or the rewrite was refused, it is the original."""

    question: str
    """The question as rewritten, without the text of a template."""
    text: str
    """What to send to the target model."""
    operator: str
    failed: bool = False
    reason: str = ""
    """Why the call failed, or why the model's rewrite was refused."""
    cost: CallCost = CallCost()


@dataclass(frozen=True)
class TargetAnswer:
    """The target model's answer. Where the call failed, it is the default refusal."""

    text: str
    failed: bool = False
    reason: str = ""
    cut: bool = False
    """True where the token limit ended the answer."""
    cost: CallCost = CallCost()


def mutation_flow(
    query: str, operator: Operator, roles: Roles, *, seed: int | None = None
) -> Generator[Any, Any, Mutation]:
    """The flow of one rewrite: ask the mutator, read its words, check that it kept the meaning."""
    if not operator.needs_model:
        edited = operator.edit(query)
        return Mutation(edited, operator.wrap(edited), operator.name)
    outcome: Outcome = yield roles.mutation_call(operator.messages(query), seed=seed)
    cost = CallCost.of(outcome)
    if outcome.failure is not None:
        return Mutation(query, query, operator.name, True, outcome.failure.reason, cost)
    rewrite, refused = operator.read_rewrite(query, outcome.text)
    if not refused and operator.preserves_meaning and rewrite != query:
        vectors: Vectors = yield Encode((query, correct_spelling(query), rewrite))
        fidelity = float(np.max(vectors[:2] @ vectors[2]))
        if fidelity < MIN_FIDELITY:
            rewrite, refused = query, f"fidelity {fidelity:.2f} is below {MIN_FIDELITY}"
    return Mutation(rewrite, rewrite, operator.name, False, refused, cost)


def answer_flow(
    prompt: str, roles: Roles, *, seed: int | None = None
) -> Generator[Any, Any, TargetAnswer]:
    """The flow of one question to the target model."""
    outcome: Outcome = yield roles.answer_call(prompt, seed=seed)
    cost = CallCost.of(outcome)
    if outcome.failure is not None:
        return TargetAnswer(DEFAULT_REFUSAL, True, outcome.failure.reason, False, cost)
    return TargetAnswer(outcome.text.strip(), False, "", outcome.reply.cut, cost)
