"""Whole training runs, measured."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.measure import Arena, Result, summarised, timed
from benchmarks.strategies import Workload
from model_client.encoders import load_encoder
from model_client.session import Models
from training.run_directory import RunDirectory
from training.settings import Settings
from training.setup import load_task
from training.trainer import Trainer


def training_run(updates: int, work: Workload, arena: Arena, *, seed: int) -> list[Result]:
    """A run as a user starts it, from its first rollout: environments, embeddings, PPO, logs."""
    settings = Settings(
        num_processes=work.num_envs,
        num_steps=work.num_steps,
        num_env_steps=updates * work.num_envs * work.num_steps,
        batch_size=work.batch_size or "auto",
        seed=seed,
    )
    client = arena.client()
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
        collect_s = trainer.counts.collect_s
        run.release()
    calls = after.model_calls - before.model_calls
    whole = summarised(
        "training run",
        work,
        calls,
        seconds=seconds,
        used=used,
        failed=after.failed_calls - before.failed_calls,
        max_in_flight=after.max_in_flight,
    )
    rollouts = replace(
        whole,
        strategy="its rollouts",
        seconds=collect_s,
        calls_per_second=calls / collect_s,
        slot_utilisation=None if used is None else used * seconds / collect_s,
    )
    return [whole, rollouts]
