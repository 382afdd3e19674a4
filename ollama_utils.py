"""What is said to model servers: encode queries, rewrite them, ask the target model.

Each function takes a batch; its single-item twin is a batch of one. Up to `max_workers` calls are
under way at once on each server (None finds out how many it can serve), results keep their order,
and an item that fails does not disturb the others: it comes back marked, with the reason.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Sequence
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.environment.asking import (
    DEFAULT_REFUSAL,
    Mutation,
    TargetAnswer,
    answer_flow,
    mutation_flow,
)
from query_mutator.models.encoders import Vectors, load_encoder
from query_mutator.models.flows import Encode, Flow, Result, encode_handler
from query_mutator.models.session import Models, open_models
from query_mutator.operators import Operator, select_operators, shipped_operators

__all__ = [
    "DEFAULT_REFUSAL",
    "Mutation",
    "TargetAnswer",
    "batch_encode_queries",
    "batch_mutate_queries",
    "batch_query_target_model",
    "encode_query",
    "mutate_query",
    "query_target_model",
]


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


def _run(flows: Sequence[Flow[Result]], models: Models, max_workers: int | None) -> list[Result]:
    handlers = {Encode: encode_handler(models.encoder.encode)}
    return models.runner(handlers, max_workers=max_workers).run(flows)


def _operator(operator: Operator | str) -> Operator:
    if isinstance(operator, Operator):
        return operator
    try:
        return select_operators(_shipped_operators(), [operator])[0]
    except UserError as error:
        raise ValueError(str(error)) from error


@functools.cache
def _shipped_operators() -> list[Operator]:
    return shipped_operators()


@functools.cache
def _default_encoder() -> Any:
    return load_encoder()


@functools.cache
def _default_models() -> Models:
    models = open_models()
    atexit.register(models.close)
    return models
