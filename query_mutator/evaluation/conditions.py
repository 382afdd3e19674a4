"""What a measured question depends on, other than the question itself."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import torch

from query_mutator.evaluation.measuring import Asking
from query_mutator.models.connect import told_digests
from query_mutator.models.session import Models
from query_mutator.objectives.version import SCORING
from query_mutator.runs.settings import Settings
from query_mutator.runs.task import Task

EDITING = 2
"""To be raised with any change of how questions are edited, or of what is refused as a rewrite:
records made before are then not used, as with any change of how answers are scored (`SCORING`)."""


def conditions(asking: Asking, settings: Settings, task: Task, models: Models) -> str:
    """A digest that changes with all of them."""
    assert isinstance(asking.policy, torch.nn.Module)
    weights = hashlib.sha256()
    for name, value in sorted(asking.policy.state_dict().items()):
        weights.update(name.encode() + value.numpy().tobytes())
    parts = [
        weights.hexdigest(),
        task.objective_source,
        asdict(asking.roles),
        told_digests(models.client.backends),
        [operator.plain() for operator in asking.operators],
        {key: value for key, value in settings.stored().items() if "weight" in key},
        settings.objective,
        settings.drift_threshold,
        settings.max_rewrites,
        settings.embedding_model,
        EDITING,
        SCORING,
    ]
    if asking.contenders:
        parts.append([[one.name, one.model, one.operator.plain()] for one in asking.contenders])
    if asking.keeper is not None:
        parts.append(asking.keeper.plain())
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
