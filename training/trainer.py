"""The training loop: collect, learn, log, save."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, fields
from math import ceil
from typing import Any

import numpy as np
import torch

from data import sample_questions
from environment.scoring import flow_handlers, gain_flow
from environment.steps import EnvStep
from errors import ServerUnavailableError
from model_client.flows import FlowRunner
from model_client.session import Models
from ppo import PPO, ActorCritic, PPOSettings, RolloutStorage, collect_rollout
from rl_query_mutator_env import BatchedQueryMutationEnv, QueryMutationEnv
from training.progress import Progress
from training.rollout_log import (
    RolloutLog,
    learning_metrics,
    performance_metrics,
    server_metrics,
)
from training.run_directory import SUMMARY, RunDirectory
from training.settings import Settings
from training.setup import Task

COUNTED = ("model_calls", "failed_calls", "cache_hits", "attempts")


@dataclass
class RunCounts:
    """What the run added up to so far, interruptions included."""

    update: int = 0
    env_steps: int = 0
    trained_transitions: int = 0
    masked_transitions: int = 0
    wall_time_s: float = 0.0
    collect_s: float = 0.0
    learn_s: float = 0.0
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    transitions_bytes: int = 0
    returns_first: list[float] = field(default_factory=list)
    """Mean returns of the first tenth of the updates."""
    returns_last: list[float] = field(default_factory=list)
    heldout_gain: float | None = None
    heldout_update: int = 0
    """The update after which that was measured."""


class Trainer:
    """Trains a policy on a task and keeps the run directory."""

    def __init__(
        self,
        settings: Settings,
        task: Task,
        models: Models,
        run: RunDirectory,
        *,
        max_rewrites: int,
    ) -> None:
        self.settings, self.task, self.models, self.run = settings, task, models, run
        envs = [
            QueryMutationEnv(
                task.train,
                task.operators,
                task.objective,
                models,
                max_rewrites=max_rewrites,
                seed=settings.seed,
                index=index,
                num_envs=settings.num_processes,
            )
            for index in range(settings.num_processes)
        ]
        # All that is known beforehand is embedded together, in batches that do not depend on time.
        references = [question.reference for question in task.train if question.reference]
        models.encoder.keep([question.question for question in task.train] + references)
        self.envs = BatchedQueryMutationEnv(envs, settings.max_workers)
        torch.manual_seed(settings.seed)
        self.policy = ActorCritic(
            self.envs.observation_size, self.envs.num_actions, settings.hidden_size
        )
        self.rollout_rows = settings.num_processes * settings.num_steps
        self.algorithm = PPO(self.policy, ppo_settings(settings), rollout_rows=self.rollout_rows)
        self.generators = [
            np.random.default_rng([settings.seed, 1, index])
            for index in range(settings.num_processes)
        ]
        self.shuffle = np.random.default_rng([settings.seed, 2])
        self.counts = RunCounts()
        self.heldout = sample_questions(task.heldout, settings.eval_sample)
        self._calls_before_resume = dict(self.counts.calls)
        self._saved: tuple[dict[str, Any], dict[str, Any]] | None = None

    @property
    def updates(self) -> int:
        """Updates in all: those done, of which one may have been short, and those to come."""
        left = max(0, self.settings.num_env_steps - self.counts.env_steps)
        return self.counts.update + ceil(left / self.rollout_rows)

    def begin(self) -> None:
        """Asks the first question of every environment: a new run starts here."""
        self.envs.batch_reset()
        self._remember()

    def train(self) -> dict[str, Any]:
        """Goes on, after `begin` or `restore`, until the steps asked for are done.

        Returns the summary.
        """
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(
            str(self.run.tensorboard), purge_step=self.counts.env_steps + 1, flush_secs=10
        )
        progress = Progress(
            self.settings.num_env_steps,
            self.counts.env_steps,
            max_workers=self.settings.max_workers,
        )
        try:
            self._draw_heldout(writer)  # a point that an interruption has left out
            while self.counts.env_steps < self.settings.num_env_steps:
                self._one_update(writer, progress)
                self._draw_heldout(writer)
        finally:
            progress.close()
            writer.close()
        self.save()
        if self.models.client.cache is not None:
            self.models.client.wait_for_ahead()  # a repeated run then finds all that it asks for
        return self.summary()

    def save(self) -> None:
        """Writes the state after the last whole update, whatever has happened since."""
        if self._saved is not None:
            self.run.save_checkpoint(*self._saved)
            self.run.write_json(SUMMARY, self.summary())

    def restore(self) -> None:
        """Takes up the last checkpoint of the run directory."""
        tensors, state = self.run.load_checkpoint()
        self.policy.load_state_dict(tensors["policy"])
        self.algorithm.optimizer.load_state_dict(tensors["optimizer"])
        for generator, saved in zip(self.generators, state["generators"], strict=True):
            generator.bit_generator.state = saved
        self.shuffle.bit_generator.state = state["shuffle"]
        self.counts = RunCounts(**state["counts"])
        self._calls_before_resume = dict(self.counts.calls)
        self.envs.set_state(state["envs"])
        self.run.cut_transitions(self.counts.transitions_bytes)
        self._remember()

    def summary(self) -> dict[str, Any]:
        """What summary.json holds: the counts of the last whole update, as in the checkpoint."""
        assert self._saved is not None
        counts = RunCounts(**self._saved[1]["counts"])
        return {
            "env_steps": counts.env_steps,
            "updates": counts.update,
            **counts.calls,
            "trained_transitions": counts.trained_transitions,
            "masked_transitions": counts.masked_transitions,
            "wall_time_s": round(counts.wall_time_s, 3),
            "collect_s": round(counts.collect_s, 3),
            "learn_s": round(counts.learn_s, 3),
            "mean_return_first": _mean_or_none(counts.returns_first),
            "mean_return_last": _mean_or_none(counts.returns_last),
            "heldout_gain": counts.heldout_gain,
        }

    def _one_update(self, writer: Any, progress: Progress) -> None:
        settings, counts = self.settings, self.counts
        started = time.monotonic()
        calls_before = self.models.client.counts()
        servers_before = self.models.client.servers()
        left = settings.num_env_steps - counts.env_steps
        num_steps = min(settings.num_steps, ceil(left / settings.num_processes))
        if settings.use_linear_lr_decay:
            self.algorithm.decay_lr(left / settings.num_env_steps)
        storage = RolloutStorage(
            num_steps, settings.num_processes, self.envs.observation_size, self.envs.num_actions
        )
        log = RolloutLog(counts.update + 1, counts.env_steps // settings.num_processes)

        def on_step(step: int, env: int, result: EnvStep) -> None:
            log.add(step, env, result)
            if result.failed and (reason := self.models.client.why_gone()):
                raise ServerUnavailableError(reason)
            client = self.models.client
            progress.step(result.episode_return, client.counts(), client.servers())

        collect_rollout(
            self.envs,
            self.policy,
            storage,
            self.generators,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            more_to_come=left > num_steps * settings.num_processes,
            on_step=on_step,
        )
        collected, calls_collected = time.monotonic(), self.models.client.counts()
        stats = self.algorithm.update(storage, self.shuffle)
        learned = time.monotonic()

        counts.update += 1
        counts.env_steps += len(log.steps)
        counts.trained_transitions += stats.trained_rows
        counts.masked_transitions += log.masked()
        counts.calls = self._calls_so_far()
        self._note_returns(log.returns())
        counts.transitions_bytes = self.run.append_transitions(log.transitions())
        if counts.update % settings.log_interval == 0 or counts.env_steps >= settings.num_env_steps:
            metrics = log.metrics()
            metrics |= learning_metrics(
                storage, stats, self.algorithm.optimizer.param_groups[0]["lr"]
            )
            metrics |= performance_metrics(
                calls_before,
                calls_collected,
                steps=len(log.steps),
                collect_s=collected - started,
                learn_s=learned - collected,
            )
            metrics |= server_metrics(
                servers_before,
                self.models.client.servers(),
                found_out=settings.max_workers is None,
            )
            for tag, value in metrics.items():
                writer.add_scalar(tag, value, counts.env_steps)
            client = self.models.client
            progress.update_done(counts.update, self.updates, client.counts(), client.servers())
        counts.wall_time_s += time.monotonic() - started
        counts.collect_s += collected - started
        counts.learn_s += learned - collected
        self._remember()
        if counts.update % settings.save_interval == 0:
            self.save()

    def _draw_heldout(self, writer: Any) -> None:
        """The point of the held-out curve at this update, where one is due and not yet drawn."""
        settings, counts = self.settings, self.counts
        last = counts.env_steps >= settings.num_env_steps
        due = settings.eval_interval and (counts.update % settings.eval_interval == 0 or last)
        if not due or counts.update == counts.heldout_update:
            return
        started = time.monotonic()
        counts.heldout_gain = self._heldout_gain()
        if counts.heldout_gain is not None:
            writer.add_scalar("Reward/heldout", counts.heldout_gain, counts.env_steps)
        counts.heldout_update = counts.update
        counts.calls = self._calls_so_far()
        counts.wall_time_s += time.monotonic() - started
        self._remember()

    def _calls_so_far(self) -> dict[str, int]:
        made = self.models.client.counts()
        return {name: self._calls_before_resume[name] + getattr(made, name) for name in COUNTED}

    def _heldout_gain(self) -> float | None:
        """How much better the policy, as it stands, has a fixed sample of questions answered."""
        env, models = self.envs.envs[0], self.models
        handlers = flow_handlers(env.objective, models.encoder)
        runner = FlowRunner(models.client, handlers, max_workers=self.settings.max_workers)
        gains = runner.run(
            [
                gain_flow(
                    question, self.policy, env.operators, env.view, env.objective, models.roles
                )
                for question in self.heldout
            ]
        )
        known = [gain for gain in gains if gain is not None]
        if len(known) < len(gains) and (reason := models.client.why_gone()):
            raise ServerUnavailableError(reason)
        return _mean_or_none(known)

    def _remember(self) -> None:
        """Keeps what a checkpoint needs: an interruption in mid-rollout saves this state."""
        tensors = {
            "policy": {name: value.clone() for name, value in self.policy.state_dict().items()},
            "optimizer": _copied(self.algorithm.optimizer.state_dict()),
        }
        state = {
            "generators": [generator.bit_generator.state for generator in self.generators],
            "shuffle": self.shuffle.bit_generator.state,
            "envs": self.envs.get_state(),
            "counts": _copied(vars(self.counts)),
        }
        self._saved = (tensors, state)

    def _note_returns(self, returns: list[float]) -> None:
        if not returns:
            return
        window = max(1, self.updates // 10)
        mean = float(np.mean(returns))
        if self.counts.update <= window:
            self.counts.returns_first.append(mean)
        self.counts.returns_last = list(deque([*self.counts.returns_last, mean], maxlen=window))


def ppo_settings(settings: Settings) -> PPOSettings:
    """The algorithm's share of the settings."""
    return PPOSettings(**{item.name: getattr(settings, item.name) for item in fields(PPOSettings)})


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _mean_or_none(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
