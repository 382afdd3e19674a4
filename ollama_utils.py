"""What is said to model servers: encode queries, rewrite them, ask the target model.

Each function takes a batch; its single-item twin is a batch of one. Up to `max_workers` calls are
under way at once on each server (None finds out how many it can serve), results keep their order,
and an item that fails does not disturb the others: it comes back marked, with the reason.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from english import correct_spelling
from errors import UserError
from model_client.calls import Outcome
from model_client.encoders import PACKAGED_MODEL, Vectors, load_encoder
from model_client.flows import Encode, Flow, FlowRunner, encode_handler
from model_client.roles import Roles
from model_client.session import Models, open_models
from operators import Operator, load_operators, select_operators

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


def batch_encode_queries(queries: Sequence[str], *, models: Models | None = None) -> Vectors:
    """One row of unit length for each query; each distinct text is computed once."""
    encoder = models.encoder if models else _default_encoder()
    return encoder.encode(queries)


def encode_query(query: str, *, models: Models | None = None) -> Vectors:
    """The embedding of one query."""
    return batch_encode_queries([query], models=models)[0]


def batch_mutate_queries(
    queries: Sequence[str],
    operators: Sequence[Operator | str] | Operator | str,
    *,
    models: Models | None = None,
    max_workers: int | None = 8,
) -> list[Mutation]:
    """The rewrites of `queries`, each by its operator (or all by one)."""
    if isinstance(operators, Operator | str):
        operators = [operators] * len(queries)
    if len(operators) != len(queries):
        raise ValueError(f"{len(queries)} queries but {len(operators)} operators")
    chosen = [_operator(operator) for operator in operators]
    models = models or _default_models()
    flows = [
        mutation_flow(query, operator, models.roles)
        for query, operator in zip(queries, chosen, strict=True)
    ]
    return _run(flows, models, max_workers)


def mutate_query(query: str, operator: Operator | str, *, models: Models | None = None) -> Mutation:
    """The rewrite of one query."""
    return batch_mutate_queries([query], operator, models=models, max_workers=1)[0]


def batch_query_target_model(
    prompts: Sequence[str], *, models: Models | None = None, max_workers: int | None = 8
) -> list[TargetAnswer]:
    """The target model's answers to `prompts`."""
    models = models or _default_models()
    return _run([answer_flow(prompt, models.roles) for prompt in prompts], models, max_workers)


def query_target_model(prompt: str, *, models: Models | None = None) -> TargetAnswer:
    """The target model's answer to one prompt."""
    return batch_query_target_model([prompt], models=models, max_workers=1)[0]


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


def _run(flows: Sequence[Flow], models: Models, max_workers: int | None) -> list[Any]:
    handlers = {Encode: encode_handler(models.encoder.encode)}
    return FlowRunner(models.client, handlers, max_workers=max_workers).run(flows)


def _operator(operator: Operator | str) -> Operator:
    if isinstance(operator, Operator):
        return operator
    try:
        return select_operators(_default_operators(), [operator])[0]
    except UserError as error:
        raise ValueError(str(error)) from error


@functools.cache
def _default_operators() -> list[Operator]:
    return load_operators()


@functools.cache
def _default_encoder() -> Any:
    return load_encoder(PACKAGED_MODEL)


@functools.cache
def _default_models() -> Models:
    models = open_models()
    atexit.register(models.close)
    return models
