"""The training loop: collect, learn, log, save."""

from __future__ import annotations

import time
from dataclasses import fields
from math import ceil
from typing import Any

import numpy as np
import torch
from pydantic import NonNegativeInt

from ppo import PPO, ActorCritic, PPOSettings, RolloutStorage, UpdateStats, collect_rollout
from ppo.steps import EnvStep
from query_mutator.base.errors import ServerUnavailableError
from query_mutator.base.flags import BETTER
from query_mutator.base.stored import stored_as
from query_mutator.data import sample_questions
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.group import BatchedQueryMutationEnv
from query_mutator.environment.keeping import Keeper
from query_mutator.environment.transition import Transition
from query_mutator.models.session import Models
from query_mutator.runs.checkpoints import Checkpoint, misfit_told
from query_mutator.runs.curves import CurveWriter
from query_mutator.runs.directory import SUMMARY, RunDirectory
from query_mutator.runs.log import RolloutLog
from query_mutator.runs.settings import Settings
from query_mutator.runs.tags import HELDOUT
from query_mutator.runs.task import Task
from query_mutator.training.counts import RunCounts, mean_or_none
from query_mutator.training.progress import Progress
from query_mutator.training.repeats import Repeats
from query_mutator.training.trainer_state import Learner, read_counts
from query_mutator.training.update_metrics import (
    Moment,
    Phases,
    failure_counts,
    learning_metrics,
    performance_metrics,
    server_metrics,
    time_metrics,
)


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
        self.keeper = Keeper() if settings.keep == BETTER else None
        self.envs = environments(
            settings, task, models, max_rewrites=max_rewrites, keeper=self.keeper
        )
        references = [question.reference for question in task.train if question.reference]
        models.encoder.keep([question.question for question in task.train] + references)
        # Its matrices are small: to split them between threads costs more than it saves, and bits.
        torch.set_num_threads(1)
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
        self.learner = Learner(
            self.algorithm, self.envs, self.generators, self.shuffle, self.keeper
        )
        self.learner.seed_globals(settings.seed)
        self.counts = RunCounts()
        self.heldout = sample_questions(task.heldout, settings.eval_sample)
        self._before_resume = RunCounts()
        self._curve_sizes: dict[str, int] = {}
        self._writer: CurveWriter | None = None
        self._saved: Checkpoint | None = None
        self._on_disk: Checkpoint | None = None

    @property
    def is_done(self) -> bool:
        """Whether the steps asked for are done."""
        return self.counts.env_steps >= self.settings.num_env_steps

    @property
    def saved_steps(self) -> int:
        """The steps after which the run would go on."""
        return int(self._saved.state["counts"]["env_steps"]) if self._saved else 0

    @property
    def updates(self) -> int:
        """Updates in all: those done, of which one may have been short, and those to come."""
        left = max(0, self.settings.num_env_steps - self.counts.env_steps)
        return self.counts.update + ceil(left / self.rollout_rows)

    def begin(self) -> None:
        """Asks the first question of every environment: a new run starts here, and its minutes."""
        self._writer = self._curve_writer()
        self.envs.batch_reset()
        self._remember()

    def train(self) -> dict[str, Any]:
        """Goes on, after `begin` or `restore`, until the steps asked for are done.

        Returns the summary.
        """
        writer = self._writer
        assert writer is not None
        progress = Progress(
            self.settings.num_env_steps,
            self.counts.env_steps,
            max_workers=self.settings.max_workers,
        )
        client = self.models.client
        client.on_wait = lambda: progress.waiting(client.outage())
        try:
            self._draw_heldout(writer)  # a point that an interruption has left out
            while not self.is_done:
                self._one_update(writer, progress)
                self._draw_heldout(writer)
        finally:
            client.on_wait = None
            progress.close()
        self.save()
        if self.models.client.cache is not None:
            self.models.client.wait_for_ahead()  # a repeated run then finds all that it asks for
        return self.summary()

    def save(self) -> None:
        """Writes the state after the last whole update, whatever has happened since."""
        saved = self._saved
        if saved is None:
            return
        if saved is not self._on_disk:
            self.run.sync_logs(list(saved.state["curves"])[-1:])
            self.run.checkpoints.save(saved.state["counts"]["env_steps"], saved)
            self._on_disk = saved
        self.run.write_json(SUMMARY, self.summary())

    def restore(self) -> None:
        """Takes up the last usable checkpoint of the run directory; what came later is dropped."""
        store = self.run.checkpoints
        checkpoint = store.newest(
            tensor_bytes=self.learner.tensor_bytes, why_not=self._why_not_resumable
        )
        self.counts = read_counts(checkpoint.state["counts"])
        self.learner.take_up(checkpoint, self.run.path)
        self._before_resume = read_counts(checkpoint.state["counts"])
        self._curve_sizes = checkpoint.state["curves"]
        store.tidy(self.counts.env_steps)
        self.run.cut_back(self.counts.transitions_bytes, self._curve_sizes)
        self._writer = self._curve_writer()
        self._saved = self._on_disk = checkpoint
        if self.learner.score_again(checkpoint, self.settings.objective):
            self._remember()

    def _why_not_resumable(self, checkpoint: Checkpoint) -> str:
        """Why the run cannot go on from a whole checkpoint, or ""."""
        with misfit_told(self.run.path):
            counts = read_counts(checkpoint.state["counts"])
            stored_as(dict[str, NonNegativeInt], checkpoint.state["curves"], "curves")
        return self.run.lost_transitions(counts.transitions_bytes)

    def summary(self) -> dict[str, Any]:
        """What summary.json holds: the counts of the last whole update, as in the checkpoint."""
        assert self._saved is not None
        return RunCounts(**self._saved.state["counts"]).summary()

    def _one_update(self, writer: CurveWriter, progress: Progress) -> None:
        settings, counts = self.settings, self.counts
        left = settings.num_env_steps - counts.env_steps
        if settings.use_linear_lr_decay:
            self.algorithm.decay_lr(left / settings.num_env_steps)
        began = Moment.of(self.models)
        storage, log, collected_again = self._collect_usable(left, progress)
        collected = Moment.of(self.models)
        stats = self.algorithm.update(storage, self.shuffle)
        if self.keeper is not None:
            self.keeper.learn(log.pairs_of_answers())
        phases = Phases(began, collected, Moment.of(self.models))
        self._count(log, stats, phases, collected_again)
        if counts.update % settings.log_interval == 0 or self.is_done:
            metrics = log.metrics() | learning_metrics(storage, stats, self.algorithm.learning_rate)
            metrics |= self._measured(phases, len(log.steps)) | counts.take_failures()
            for tag, value in sorted(metrics.items()):
                writer.add_scalar(tag, value, counts.env_steps)
            client = self.models.client
            progress.update_done(counts.update, self.updates, client.counts(), client.servers())
        counts.wall_time_s += time.monotonic() - began.at_s
        counts.collect_s += phases.collect_s
        counts.learn_s += phases.learn_s
        self._remember(writer)
        if counts.update % settings.save_interval == 0:
            self.save()

    def _count(
        self, log: RolloutLog, stats: UpdateStats, phases: Phases, collected_again: int
    ) -> None:
        """Adds an update to what the run adds up to, and its transitions to the log."""
        counts = self.counts
        counts.update += 1
        counts.env_steps += len(log.steps)
        counts.trained_transitions += stats.trained_rows
        counts.masked_transitions += log.masked()
        counts.refused_rewrites += log.refused()
        counts.dropped_rewrites += log.dropped()
        counts.count_calls(self.models.client.counts(), self._before_resume)
        kinds = counts.failures_by_kind
        counts.note_failures(
            failure_counts(log, phases, kinds=kinds, collected_again=collected_again)
        )
        if returns := log.returns():
            counts.note_return(float(np.mean(returns)), self.updates)
        counts.transitions_bytes = self.run.append_transitions(
            [step.to_json() for step in log.transitions()], at=counts.transitions_bytes
        )

    def _measured(self, phases: Phases, steps: int) -> dict[str, float]:
        """How fast an update went, where its time went, and how the servers fared."""
        return {
            **performance_metrics(phases, steps),
            **time_metrics(phases, slots=self._slots()),
            **server_metrics(phases, found_out=self.settings.max_workers is None),
        }

    def _curve_writer(self) -> CurveWriter:
        first_step = self.counts.env_steps + 1
        return CurveWriter(self.run.tensorboard, self._curve_sizes, first_step=first_step)

    def _slots(self) -> int:
        """Calls that may be under way at once."""
        servers = self.models.client.servers()
        if self.settings.max_workers is not None:
            return self.settings.max_workers * len(servers)
        return sum(server.limit or 0 for server in servers)

    def _collect_usable(
        self, left: int, progress: Progress
    ) -> tuple[RolloutStorage, RolloutLog, int]:
        """A rollout of which enough has not failed, and how often it took another attempt."""
        repeats = Repeats(self.settings.max_failed_share, self.settings.max_outage)
        while True:
            before = self.models.client.counts()
            storage, log = self._collect(left, progress)
            failures = self.models.client.counts().failures_by_kind - before.failures_by_kind
            if not repeats.needs_another(log, failures):
                return storage, log, repeats.count
            self._go_back()
            progress.back(len(log.steps))
            repeats.pause()

    def _go_back(self) -> None:
        """Takes environments and generators to where they were before this rollout."""
        assert self._saved is not None
        self.learner.go_back(self._saved)
        self.counts.rollouts_collected_again += 1
        self._saved.state["counts"]["rollouts_collected_again"] += 1
        self._on_disk = None

    def _collect(self, left: int, progress: Progress) -> tuple[RolloutStorage, RolloutLog]:
        """The next rollout, of which `left` steps are still asked for."""
        settings, client = self.settings, self.models.client
        num_steps = min(settings.num_steps, ceil(left / settings.num_processes))
        storage = RolloutStorage(
            num_steps, settings.num_processes, self.envs.observation_size, self.envs.num_actions
        )
        log = RolloutLog(self.counts.update + 1, self.counts.env_steps // settings.num_processes)

        def on_step(step: int, env: int, result: EnvStep[Transition]) -> None:
            log.add(step, env, result.info)
            if result.failed and (reason := client.why_gone()):
                raise ServerUnavailableError(reason)
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
        return storage, log

    def _draw_heldout(self, writer: CurveWriter) -> None:
        """The point of the held-out curve at this update, where one is due and not yet drawn."""
        settings, counts = self.settings, self.counts
        last = counts.env_steps >= settings.num_env_steps
        due = settings.eval_interval and (counts.update % settings.eval_interval == 0 or last)
        if not due or counts.update == counts.heldout_update:
            return
        started = time.monotonic()
        counts.heldout_gain = self._heldout_gain()
        if counts.heldout_gain is not None:
            writer.add_scalar(HELDOUT, counts.heldout_gain, counts.env_steps)
        counts.heldout_update = counts.update
        counts.count_calls(self.models.client.counts(), self._before_resume)
        counts.wall_time_s += time.monotonic() - started
        self._remember(writer)

    def _heldout_gain(self) -> float | None:
        """How much better the policy, as it stands, has a fixed sample of questions answered."""
        gains = self.envs.gains(self.heldout, self.policy)
        known = [gain for gain in gains if gain is not None]
        if len(known) < len(gains) and (reason := self.models.client.why_gone()):
            raise ServerUnavailableError(reason)
        return mean_or_none(known)

    def _remember(self, writer: CurveWriter | None = None) -> None:
        """Keeps what a checkpoint needs: an interruption in mid-rollout saves this state."""
        if writer is not None:
            self._curve_sizes = writer.flush()
        self._saved = self.learner.checkpoint(vars(self.counts), self._curve_sizes)


def environments(
    settings: Settings,
    task: Task,
    models: Models,
    *,
    max_rewrites: int,
    keeper: Keeper | None = None,
) -> BatchedQueryMutationEnv:
    """The environments that a run steps side by side."""
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
            keeper=keeper,
        )
        for index in range(settings.num_processes)
    ]
    return BatchedQueryMutationEnv(envs, settings.max_workers)


def ppo_settings(settings: Settings) -> PPOSettings:
    """The algorithm's share of the settings."""
    return PPOSettings(**{item.name: getattr(settings, item.name) for item in fields(PPOSettings)})
