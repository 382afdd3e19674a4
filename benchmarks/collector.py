"""The trainer itself, measured: whole runs, and what the collector costs by itself."""

from __future__ import annotations

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import requests
import torch

from benchmarks.measure import Arena, Result, summarised, timed
from benchmarks.strategies import OURS, Workload
from model_client.connect import connect
from model_client.encoders import load_encoder
from model_client.session import Models
from ppo import ActorCritic, RolloutStorage, collect_rollout
from rl_query_mutator_env import BatchedQueryMutationEnv, QueryMutationEnv
from servers.simulated import DEFAULT_MODELS, start_simulated
from training.run_directory import RunDirectory
from training.settings import Settings
from training.setup import load_task
from training.trainer import Trainer

MUTATOR, TARGET = DEFAULT_MODELS


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


def overhead(work: Workload, *, seed: int) -> list[Result]:
    """A bare loop of pooled requests, and the collector, both against a server without latency.

    The collector runs twice: by the second time all embeddings are in memory, and that is timed.
    """
    with start_simulated("--slots=8", "--questions=data/questions.jsonl") as child:
        connection = connect(child.url, mutator_model=MUTATOR, target_model=TARGET)
        arena = Arena([child.url], connection, [child], 8)
        arena.load_models()
        calls = list(work.calls())
        dialect = connection.backends[0].dialect
        local = threading.local()

        def ask(index: int) -> None:
            if not hasattr(local, "session"):
                local.session = requests.Session()
            path, payload = dialect.chat_request(calls[index])
            answer = local.session.post(child.url + path, json=payload, timeout=60)
            dialect.read_chat(answer.json())

        started = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(len(calls))))
        bare_s = time.monotonic() - started

        torch.set_num_threads(1)
        encoder = load_encoder()
        for _ in range(2):
            client = arena.client()
            collect_s = _collect(Models(client, work.roles, encoder, connection), work, seed)
        counts = client.counts()
        connection.close()
    return [
        summarised("requests, 8 threads", work, len(calls), seconds=bare_s),
        summarised(f"{OURS}, with policy", work, counts.model_calls, seconds=collect_s),
    ]


def _collect(models: Models, work: Workload, seed: int) -> float:
    settings = Settings(seed=seed)
    task = load_task(settings)
    envs = BatchedQueryMutationEnv(
        [
            QueryMutationEnv(
                task.train,
                task.operators,
                task.objective,
                models,
                max_rewrites=2,
                seed=seed,
                index=index,
                num_envs=work.num_envs,
            )
            for index in range(work.num_envs)
        ],
        work.batch_size,
    )
    models.encoder.keep([q.question for q in task.train] + [q.reference for q in task.train])
    torch.manual_seed(seed)
    policy = ActorCritic(envs.observation_size, envs.num_actions, settings.hidden_size)
    storage = RolloutStorage(work.num_steps, work.num_envs, envs.observation_size, envs.num_actions)
    generators = [np.random.default_rng([seed, index]) for index in range(work.num_envs)]
    started = time.monotonic()
    envs.batch_reset()
    collect_rollout(envs, policy, storage, generators, gamma=0.99, gae_lambda=0.95)
    return time.monotonic() - started
