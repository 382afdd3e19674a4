"""What one rollout amounted to: its transition lines and its metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from ppo import RolloutStorage, UpdateStats
from query_mutator.environment.transition import Transition
from query_mutator.models.backend import BackendStatus
from query_mutator.models.client import CallCounts
from query_mutator.runs import tags


@dataclass
class RolloutLog:
    """Steps of a rollout as they end, in any order."""

    update: int
    first_step: int
    """The number of each environment's first step in this rollout."""
    steps: dict[tuple[int, int], Transition] = field(default_factory=dict)

    def add(self, step: int, env: int, transition: Transition) -> None:
        self.steps[step, env] = replace(
            transition, update=self.update, env=env, step=self.first_step + step
        )

    def transitions(self) -> list[Transition]:
        """Ordered by step and environment: timing leaves no trace."""
        return [transition for _, transition in sorted(self.steps.items(), key=itemgetter(0))]

    def returns(self) -> list[float]:
        """The returns of the episodes that ended, failed ones left out."""
        returns = [step.episode_return for step in self.transitions()]
        return [found for found in returns if found is not None]

    def masked(self) -> int:
        return sum(step.failed for step in self.steps.values())

    def first_failure(self) -> str:
        """Why a step failed, the first in the order of steps and environments; "" if none did."""
        return next((step.failure for step in self.transitions() if step.failed), "")

    def refused(self) -> int:
        """Rewrites that were not used."""
        return sum(bool(step.refused_rewrite) and not step.failed for step in self.steps.values())

    def metrics(self) -> dict[str, float]:
        """What the steps themselves tell."""
        valid = [step for step in self.transitions() if not step.failed]
        actions = Counter(step.operator for step in self.steps.values())
        metrics = {tags.STOP_SHARE: actions.pop("stop", 0) / len(self.steps)}
        for name, many in actions.items():
            metrics[tags.OPERATOR_SHARE.format(name=name)] = many / len(self.steps)
        if not valid:
            return metrics
        metrics[tags.MEAN_REWARD] = _mean([step.reward for step in valid])
        terms: dict[str, list[float]] = defaultdict(list)
        for step in valid:
            for name, term in step.terms.items():
                terms[name].append(term.value)
        metrics |= {tags.TERM.format(name=name): _mean(found) for name, found in terms.items()}
        ended = [step for step in valid if step.episode_return is not None]
        if ended:
            last = [step.score or 0.0 for step in ended]
            returns = [step.episode_return or 0.0 for step in ended]
            metrics[tags.MEAN_RETURN] = _mean(returns)
            metrics[tags.SCORE_LAST] = _mean(last)
            metrics[tags.SCORE_UNCHANGED] = _mean(last) - _mean(returns)
        return metrics


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


def performance_metrics(
    before: CallCounts, after: CallCounts, *, steps: int, collect_s: float, learn_s: float
) -> dict[str, float]:
    """How fast it went."""
    calls = after.model_calls - before.model_calls
    hits = after.cache_hits - before.cache_hits
    latency_s = after.latency_s - before.latency_s
    collect_s = max(collect_s, 1e-9)
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
    log: RolloutLog,
    before: CallCounts,
    after: CallCounts,
    *,
    kinds: Iterable[str],
    collected_again: int,
) -> dict[str, int]:
    """What went wrong in a rollout, calls by kind too: those that the run has met so far."""
    made = after.failures_by_kind - before.failures_by_kind
    return {
        tags.MASKED_TRANSITIONS: log.masked(),
        tags.REFUSED_REWRITES: log.refused(),
        tags.FAILED_CALLS: after.failed_calls - before.failed_calls,
        tags.COLLECTED_AGAIN: collected_again,
        **{tags.FAILED_CALLS_OF_KIND.format(name=kind): made[kind] for kind in kinds},
    }


def server_metrics(
    before: Sequence[BackendStatus], after: Sequence[BackendStatus], *, found_out: bool
) -> dict[str, float]:
    """How the servers fared; `found_out` tells that their limits are not set by the user."""
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


def _mean(values: list[float]) -> float:
    return float(np.mean(values))
