"""Learns how to rephrase questions so that a language model answers them well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from query_mutator.evaluation.trained_policy import LoadedPolicy

__version__ = "0.2.0"


def load_policy(run: str, **changes: Any) -> LoadedPolicy:
    """The policy of a run, connected to its models.

    `changes` replace settings of the run: `server`, `target_model`, `mutator_model`, `batch_size`.
    """
    from query_mutator.evaluation import trained_policy  # it brings torch

    return trained_policy.load_policy(run, **changes)
