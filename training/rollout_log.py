"""What one rollout amounted to: its transition lines and its metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from environment.steps import EnvStep
from model_client.backend import BackendStatus
from model_client.client import CallCounts
from ppo import RolloutStorage, UpdateStats

TRANSITION_KEYS = (
    "question_id",
    "category",
    "operator",
    "original_query",
    "query",
    "rewritten_query",
    "rewritten_question",
    "previous_answer",
    "answer",
    "previous_score",
    "score",
    "reward",
    "terms",
    "failed",
    "failure",
    "refused_rewrite",
    "costs",
)


@dataclass
class RolloutLog:
    """Steps of a rollout as they end, in any order."""

    update: int
    first_step: int
    """The number of each environment's first step in this rollout."""
    steps: dict[tuple[int, int], EnvStep] = field(default_factory=dict)

    def add(self, step: int, env: int, result: EnvStep) -> None:
        self.steps[step, env] = result

    def transitions(self) -> list[dict[str, Any]]:
        """One line for each step, ordered by step and environment: timing leaves no trace."""
        lines = []
        for (step, env), result in sorted(self.steps.items()):
            line: dict[str, Any] = {
                "update": self.update,
                "env": env,
                "step": self.first_step + step,
                "terminated": result.terminated,
                "episode_return": result.episode_return,
            }
            line.update((key, result.info[key]) for key in TRANSITION_KEYS)
            # What a call took depends on the moment; what it said does not.
            line["costs"] = {
                name: {key: cost[key] for key in ("prompt_tokens", "completion_tokens")}
                for name, cost in result.info["costs"].items()
            }
            lines.append(line)
        return lines

    def returns(self) -> list[float]:
        """The returns of the episodes that ended, failed ones left out."""
        ordered = [result for _, result in sorted(self.steps.items())]
        return [step.episode_return for step in ordered if step.episode_return is not None]

    def masked(self) -> int:
        return sum(result.failed for result in self.steps.values())

    def first_failure(self) -> str:
        """Why a step failed, the first in the order of steps and environments; "" if none did."""
        failed = (result for _, result in sorted(self.steps.items()) if result.failed)
        return next((str(result.info["failure"]) for result in failed), "")

    def metrics(self) -> dict[str, float]:
        """What the steps themselves tell."""
        valid = [result for _, result in sorted(self.steps.items()) if not result.failed]
        metrics: dict[str, float] = {
            "Failures/masked_transitions": self.masked(),
            "Failures/refused_rewrites": sum(bool(step.info["refused_rewrite"]) for step in valid),
        }
        actions = Counter(result.info["operator"] for result in self.steps.values())
        metrics["RL/stop_share"] = actions.pop("stop", 0) / len(self.steps)
        metrics |= {f"Operators/{name}": n / len(self.steps) for name, n in actions.items()}
        if not valid:
            return metrics
        metrics["Reward/mean_reward"] = _mean([step.reward for step in valid])
        terms: dict[str, list[float]] = defaultdict(list)
        for step in valid:
            for name, term in step.info["terms"].items():
                terms[name].append(term["value"])
        metrics |= {f"Reward/term_{name}": _mean(values) for name, values in terms.items()}
        ended = [step for step in valid if step.episode_return is not None]
        if ended:
            last = [step.info["score"] for step in ended]
            returns = [step.episode_return or 0.0 for step in ended]
            metrics["Reward/mean_return"] = _mean(returns)
            metrics["Reward/score_last"] = _mean(last)
            metrics["Reward/score_unchanged"] = _mean(last) - _mean(returns)
        return metrics


def learning_metrics(
    storage: RolloutStorage, stats: UpdateStats, learning_rate: float
) -> dict[str, float]:
    """What the update tells."""
    metrics = {
        "Training/learning_rate": learning_rate,
        "Training/optimizer_steps": float(stats.optimizer_steps),
        "Training/explained_variance": stats.explained_variance,
    }
    if storage.valid.any():
        metrics["RL/value_mean"] = float(storage.values[storage.valid].mean())
        metrics["RL/advantage_std"] = float(storage.advantages[storage.valid].std())
    if stats.optimizer_steps:
        for name in ("loss", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"):
            metrics[f"Training/{name}"] = getattr(stats, name)
        metrics["Gradients/norm_before_clip"] = stats.norm_before_clip
        metrics["Gradients/norm_before_clip_max"] = stats.norm_before_clip_max
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
        "Performance/transitions_per_second": steps / (collect_s + learn_s),
        "Performance/calls_per_second": calls / collect_s,
        "Performance/slots_busy": latency_s / collect_s,
        "Performance/learner_percentage_training": 100 * learn_s / (collect_s + learn_s),
        "Performance/tokens_per_second": (after.completion_tokens - before.completion_tokens)
        / collect_s,
    }
    if calls:
        metrics["Performance/mean_call_latency_s"] = latency_s / calls
        metrics["Performance/mean_queue_wait_s"] = (after.queue_s - before.queue_s) / calls
        metrics["Performance/mean_load_s"] = (after.load_s - before.load_s) / calls
    if calls + hits:
        metrics["Performance/cache_hit_share"] = hits / (calls + hits)
    return metrics


def failure_metrics(
    before: CallCounts, after: CallCounts, *, kinds: Iterable[str], collected_again: int
) -> dict[str, float]:
    """What went wrong, by kind: those that the run has met so far."""
    made = after.failures_by_kind - before.failures_by_kind
    return {
        "Failures/failed_calls": after.failed_calls - before.failed_calls,
        "Failures/rollouts_collected_again": collected_again,
        **{f"Failures/calls_{kind}": made[kind] for kind in kinds},
    }


def server_metrics(
    before: Sequence[BackendStatus], after: Sequence[BackendStatus], *, found_out: bool
) -> dict[str, float]:
    """How the servers fared; `found_out` tells that their limits are not set by the user."""
    metrics: dict[str, float] = {}
    if found_out:
        metrics["Performance/concurrency_limit"] = sum(server.limit or 0 for server in after)
    if len(after) > 1:
        calls = [new.calls - old.calls for old, new in zip(before, after, strict=True)]
        for server, made in zip(after, calls, strict=True):
            name = server.name.replace(":", "_")
            metrics[f"Servers/{name}_share"] = made / max(1, sum(calls))
            metrics[f"Servers/{name}_up"] = float(server.up)
    return metrics


def _mean(values: list[float]) -> float:
    return float(np.mean(values))
