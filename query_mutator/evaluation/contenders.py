"""Adapters that are compared with a policy and its operators, each asked alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from query_mutator.models.session import Models
from query_mutator.operators import Operator, shipped_operators


@dataclass(frozen=True)
class Contender:
    """One of them, as a way of asking."""

    operator: Operator
    """The operator that asks a tuned mutator."""
    adapter: str
    """What the adapter is called."""
    model: str
    """The mutator with it, among the models."""

    @property
    def name(self) -> str:
        """No operator is called so: a space is in it."""
        return f"{self.operator.name} by {self.adapter}"


def contenders_of(models: Models, operators: Sequence[Operator]) -> list[Contender]:
    """The adapters that are served, asked by the operator of the run that asks a tuned mutator.

    A run without one takes the shipped one.
    """
    served = models.connection.contender_models
    if not served:
        return []
    tuned = next(one for one in (*operators, *shipped_operators()) if one.tuned)
    return [Contender(tuned, adapter, model) for adapter, model in served.items()]
