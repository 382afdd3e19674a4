"""Whole training runs, measured."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from query_mutator.base.flags import AUTO
from query_mutator.bench.measure import Arena, Result, summarised, timed
from query_mutator.bench.strategies import Workload
from query_mutator.models.encoders import load_encoder
from query_mutator.models.session import Models
from query_mutator.runs.directory import RunDirectory
from query_mutator.runs.settings import Settings
from query_mutator.runs.task import load_task
from query_mutator.training.trainer import Trainer

TRAINING = "training run"
UNGROUPED_TRAINING = f"{TRAINING}, ungrouped"


def training_run(
    name: str, updates: int, work: Workload, arena: Arena, *, seed: int
) -> list[Result]:
    """A run as a user starts it, from its first rollout: environments, embeddings, PPO, logs.

    Calls that were made ahead in vain count neither as calls nor as use of the slots.
    """
    settings = Settings(
        num_processes=work.num_envs,
        num_steps=work.num_steps,
        num_env_steps=updates * work.num_envs * work.num_steps,
        batch_size=work.batch_size or AUTO,
        eval_interval=0,
        seed=seed,
    )
    client = arena.client(group_by_model=False if name == UNGROUPED_TRAINING else None)
    torch.set_num_threads(1)
    models = Models(client, work.roles, load_encoder(), arena.connection)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        trainer = Trainer(settings, load_task(settings), models, run, max_rewrites=2)
        trainer.begin()
        run.create()
        before = client.counts()
        seconds, used = timed(arena, trainer.train)
        after = client.counts()
        run.release()
    calls = after.model_calls - before.model_calls
    needed = calls - client.unused_ahead()
    result = summarised(
        name,
        work,
        needed,
        seconds=seconds,
        used=used and used * needed / calls,
        failed=after.failed_calls - before.failed_calls,
        max_in_flight=after.max_in_flight,
    )
    return [result]
