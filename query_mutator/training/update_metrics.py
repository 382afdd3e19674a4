"""What an update was like: how fast, where its time went, what went wrong, what it learned."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ppo import RolloutStorage, UpdateStats
from query_mutator.models.backend import BackendStatus
from query_mutator.models.client import CallCounts
from query_mutator.models.session import Models
from query_mutator.runs import tags
from query_mutator.runs.log import RolloutLog

PURPOSES = {"mutation": tags.TIME_MUTATION, "answer": tags.TIME_TARGET, "judge": tags.TIME_JUDGE}


@dataclass(frozen=True)
class Moment:
    """What had been done at one point of an update."""

    at_s: float
    calls: CallCounts
    servers: Sequence[BackendStatus] = ()
    embedded_s: float = 0.0

    @classmethod
    def of(cls, models: Models) -> Moment:
        """What these models have done by now."""
        client = models.client
        return cls(time.monotonic(), client.counts(), client.servers(), models.encoder.seconds)


@dataclass(frozen=True)
class Phases:
    """An update: steps are collected, then the policy learns from them."""

    began: Moment
    collected: Moment
    learned: Moment

    @property
    def collect_s(self) -> float:
        return self.collected.at_s - self.began.at_s

    @property
    def learn_s(self) -> float:
        return self.learned.at_s - self.collected.at_s


def learning_metrics(
    storage: RolloutStorage, stats: UpdateStats, learning_rate: float
) -> dict[str, float]:
    """What the update tells."""
    metrics = {
        tags.LEARNING_RATE: learning_rate,
        tags.OPTIMIZER_STEPS: float(stats.optimizer_steps),
        tags.EXPLAINED_VARIANCE: stats.explained_variance,
    }
    if storage.valid.any():
        metrics[tags.VALUE_MEAN] = float(storage.values[storage.valid].mean())
        metrics[tags.ADVANTAGE_STD] = float(storage.advantages[storage.valid].std())
    if stats.optimizer_steps:
        metrics[tags.LOSS] = stats.loss
        metrics[tags.POLICY_LOSS] = stats.policy_loss
        metrics[tags.VALUE_LOSS] = stats.value_loss
        metrics[tags.ENTROPY] = stats.entropy
        metrics[tags.APPROX_KL] = stats.approx_kl
        metrics[tags.CLIP_FRACTION] = stats.clip_fraction
        metrics[tags.GRADIENT_NORM] = stats.norm_before_clip
        metrics[tags.GRADIENT_NORM_MAX] = stats.norm_before_clip_max
    return metrics


def performance_metrics(phases: Phases, steps: int) -> dict[str, float]:
    """How fast it went."""
    before, after, learn_s = phases.began.calls, phases.collected.calls, phases.learn_s
    calls = after.model_calls - before.model_calls
    hits = after.cache_hits - before.cache_hits
    latency_s = after.latency_s - before.latency_s
    collect_s = max(phases.collect_s, 1e-9)
    metrics = {
        tags.TRANSITIONS_PER_SECOND: steps / (collect_s + learn_s),
        tags.CALLS_PER_SECOND: calls / collect_s,
        tags.SLOTS_BUSY: latency_s / collect_s,
        tags.LEARNER_PERCENTAGE: 100 * learn_s / (collect_s + learn_s),
        tags.TOKENS_PER_SECOND: (after.completion_tokens - before.completion_tokens) / collect_s,
    }
    if calls:
        metrics[tags.MEAN_CALL_LATENCY_S] = latency_s / calls
        metrics[tags.MEAN_QUEUE_WAIT_S] = (after.queue_s - before.queue_s) / calls
        metrics[tags.MEAN_LOAD_S] = (after.load_s - before.load_s) / calls
    if calls + hits:
        metrics[tags.CACHE_HIT_SHARE] = hits / (calls + hits)
    return metrics


def failure_counts(
    log: RolloutLog, phases: Phases, *, kinds: Iterable[str], collected_again: int
) -> dict[str, int]:
    """What went wrong in a rollout, calls by kind too: those that the run has met so far."""
    before, after = phases.began.calls, phases.collected.calls
    made = after.failures_by_kind - before.failures_by_kind
    return {
        tags.MASKED_TRANSITIONS: log.masked(),
        tags.REFUSED_REWRITES: log.refused(),
        tags.FAILED_CALLS: after.failed_calls - before.failed_calls,
        tags.COLLECTED_AGAIN: collected_again,
        **{tags.FAILED_CALLS_OF_KIND.format(name=kind): made[kind] for kind in kinds},
    }


def server_metrics(phases: Phases, *, found_out: bool) -> dict[str, float]:
    """How the servers fared; `found_out` tells that their limits are not set by the user."""
    before, after = phases.began.servers, phases.learned.servers
    metrics: dict[str, float] = {}
    if found_out:
        metrics[tags.CONCURRENCY_LIMIT] = sum(server.limit or 0 for server in after)
    if len(after) > 1:
        calls = [new.calls - old.calls for old, new in zip(before, after, strict=True)]
        for server, made in zip(after, calls, strict=True):
            name = server.name.replace(":", "_")
            metrics[tags.SERVER_SHARE.format(name=name)] = made / max(1, sum(calls))
            metrics[tags.SERVER_UP.format(name=name)] = float(server.up)
    return metrics


def time_metrics(phases: Phases, *, slots: int) -> dict[str, float]:
    """The seconds of all slots, a slot being a call that may be under way; parts of one whole.

    While the policy learns, slots without a call are put down to it. While texts are embedded, as
    many slots are taken to be free as are on average while steps are collected.
    """
    began, collected, learned = phases.began, phases.collected, phases.learned
    collect_s, learn_s = phases.collect_s, phases.learn_s
    spent = _between(began.calls, learned.calls)
    busy_while_learning = sum(_between(collected.calls, learned.calls).values())
    learning = max(0.0, slots * learn_s - busy_while_learning)
    # What ends within an update may have begun before it: the sum can be above all there is.
    free = max(0.0, slots * (collect_s + learn_s) - sum(spent.values()) - learning)
    embed_s = learned.embedded_s - began.embedded_s
    embedding = free * min(1.0, embed_s / max(collect_s, 1e-9))
    metrics = {PURPOSES[purpose]: seconds for purpose, seconds in spent.items()}
    return metrics | {
        tags.TIME_EMBEDDING: embedding,
        tags.TIME_LEARNING: learning,
        tags.TIME_IDLE: free - embedding,
    }


def _between(before: CallCounts, after: CallCounts) -> dict[str, float]:
    return {
        purpose: _of(after.seconds, purpose) - _of(before.seconds, purpose)
        for purpose in PURPOSES
        if purpose != "judge" or purpose in after.seconds
    }


def _of(seconds: Mapping[str, float], purpose: str) -> float:
    return seconds.get(purpose, 0.0)
