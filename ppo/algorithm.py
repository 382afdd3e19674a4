"""Proximal policy optimisation with clipped policy and value losses (Schulman et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

import numpy as np
import torch
from torch import Tensor, nn

from ppo.policy import ActorCritic
from ppo.settings import PPOSettings
from ppo.storage import RolloutStorage, TrainingRows

ADAM_EPSILON = 1e-5
KL_TOLERANCE = 1.5
HARDLY_VARY = 0.01
"""Returns whose deviation is less than this share of the values' error give no unit to clip in."""
ROUNDING = 1e-6
"""A deviation below this share of the largest number is no more than float32's rounding."""
LOWEST_EXPLAINED = -1.0


@dataclass(frozen=True)
class UpdateStats:
    """Means over the mini-batches of one update (`norm_before_clip_max` is the largest)."""

    loss: float = 0.0
    policy_loss: float = 0.0
    value_loss: float = 0.0
    entropy: float = 0.0
    approx_kl: float = 0.0
    clip_fraction: float = 0.0
    norm_before_clip: float = 0.0
    norm_before_clip_max: float = 0.0
    explained_variance: float = 0.0
    optimizer_steps: int = 0
    trained_rows: int = 0


class PPO:
    """Improves a policy from rollouts.

    A full rollout has `rollout_rows` rows and makes `num_mini_batch` mini-batches; one with fewer
    valid rows makes fewer of the same size. Without `rollout_rows`, the storage's size is full.
    """

    def __init__(
        self, policy: ActorCritic, settings: PPOSettings, *, rollout_rows: int | None = None
    ) -> None:
        self.policy = policy
        self.settings = settings
        self.rollout_rows = rollout_rows
        self.optimizer = torch.optim.Adam(policy.parameters(), settings.lr, eps=ADAM_EPSILON)

    @property
    def learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def decay_lr(self, share_left: float) -> None:
        """Sets the learning rate to a share of the initial one."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.lr * share_left

    def update(self, storage: RolloutStorage, generator: np.random.Generator) -> UpdateStats:
        """One update: some epochs over the valid rows, none left out, in shuffled mini-batches.

        Raises FloatingPointError where it leads to what is no number; the policy is then spoilt.
        """
        rows = storage.training_rows()
        if len(rows) == 0:
            return UpdateStats()
        advantages = _normalised(rows.advantages)
        value_clip = value_clip_of(rows, self.settings.clip_param)
        full_rows = self.rollout_rows or storage.valid.size
        mini_batches = mini_batch_count(len(rows), full_rows, self.settings.num_mini_batch)
        measured: list[dict[str, float]] = []
        stopped = False
        for _ in range(self.settings.ppo_epoch):
            order = generator.permutation(len(rows))
            for chosen in np.array_split(order, mini_batches):
                stats = self._step(rows, advantages, value_clip, torch.from_numpy(chosen))
                if stats is None:
                    stopped = True
                    break
                measured.append(stats)
            if stopped:
                break
        return summarised(
            measured, explained=explained_variance(rows.values, rows.returns), rows=len(rows)
        )

    def _step(
        self, rows: TrainingRows, advantages: Tensor, value_clip: float, chosen: Tensor
    ) -> dict[str, float] | None:
        """One optimizer step; None where the policy has already moved too far to take it."""
        settings = self.settings
        all_log_probs, values = self.policy(rows.observations[chosen], rows.masks[chosen])
        log_probs = all_log_probs.gather(1, rows.actions[chosen].unsqueeze(1)).squeeze(1)
        log_ratio = log_probs - rows.log_probs[chosen]
        ratio = log_ratio.exp()
        with torch.no_grad():
            # The low-variance, non-negative estimator of http://joschu.net/blog/kl-approx.html
            approx_kl = float((ratio - 1 - log_ratio).mean())
            clipped = float(((ratio - 1).abs() > settings.clip_param).float().mean())
        if settings.target_kl is not None and approx_kl > KL_TOLERANCE * settings.target_kl:
            return None
        advantage = advantages[chosen]
        bounded = ratio.clamp(1 - settings.clip_param, 1 + settings.clip_param)
        policy_loss = -torch.min(ratio * advantage, bounded * advantage).mean()
        value_loss = clipped_value_loss(
            values, rows.values[chosen], rows.returns[chosen], value_clip
        )
        entropy = -(all_log_probs.exp() * all_log_probs).sum(-1).mean()
        loss = policy_loss + settings.value_loss_coef * value_loss - settings.entropy_coef * entropy
        check_finite("policy loss", policy_loss)
        check_finite("value loss", value_loss)
        check_finite("loss", loss)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), settings.max_grad_norm)
        check_finite("gradient", norm)
        self.optimizer.step()
        return {
            "loss": loss.item(),
            "policy_loss": policy_loss.item(),
            "value_loss": value_loss.item(),
            "entropy": entropy.item(),
            "approx_kl": approx_kl,
            "clip_fraction": clipped,
            "norm_before_clip": norm.item(),
        }


def check_finite(name: str, value: Tensor) -> None:
    """Raises FloatingPointError where a number is none."""
    if not torch.isfinite(value).all():
        raise FloatingPointError(f"the {name} has become infinite or not a number")


def mini_batch_count(rows: int, full_rows: int, full_number: int) -> int:
    """How many near-equal parts of `rows` are closest in size to those of a full rollout.

    A half is rounded down: no part is of one row where those of a full rollout have two or more.
    """
    return min(rows, max(1, ceil(rows * full_number / full_rows - 0.5)))


def value_clip_of(rows: TrainingRows, clip_param: float) -> float:
    """How far a value may move in an update, in units of the returns' own deviation.

    Rewards are not normalised, and an absolute bound would freeze the critic where returns are
    large. Nothing bounds it where they hardly vary: it could not move to where they all are.
    """
    deviation = float(rows.returns.std(correction=0))
    error = float((rows.returns - rows.values).square().mean().sqrt())
    return clip_param * deviation if deviation > HARDLY_VARY * error else inf


def clipped_value_loss(values: Tensor, old_values: Tensor, returns: Tensor, clip: float) -> Tensor:
    """Half the mean squared error, of the value or of the clipped one where that is worse."""
    bounded = old_values + (values - old_values).clamp(-clip, clip)
    return 0.5 * torch.max((values - returns) ** 2, (bounded - returns) ** 2).mean()


def _normalised(advantages: Tensor) -> Tensor:
    """Zero mean and unit deviation over all valid rows; a single row stays as it is."""
    if len(advantages) < 2:
        return advantages
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """The share of the returns' variance that the values predict: from -1, or lower, to 1.

    0 where all returns are equal up to rounding: there is nothing to explain.
    """
    variance = float(returns.double().var(correction=0))
    residual = float((returns - values).double().var(correction=0))
    largest = float(torch.stack([values.abs(), returns.abs()]).max())
    if variance <= (ROUNDING * largest) ** 2:
        return 0.0
    return max(LOWEST_EXPLAINED, 1 - residual / variance)


def summarised(measured: list[dict[str, float]], *, explained: float, rows: int) -> UpdateStats:
    """The means over the mini-batches of an update."""
    if not measured:
        return UpdateStats(explained_variance=explained, trained_rows=rows)
    means = {key: float(np.mean([stats[key] for stats in measured])) for key in measured[0]}
    return UpdateStats(
        **means,
        norm_before_clip_max=max(stats["norm_before_clip"] for stats in measured),
        explained_variance=explained,
        optimizer_steps=len(measured),
        trained_rows=rows,
    )
