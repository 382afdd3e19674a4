"""The numbers of PPO and their defaults, which the trainer's flags take over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PPOSettings:
    """The numbers of the algorithm."""

    lr: float = 1e-2
    gamma: float = 1.0
    gae_lambda: float = 0.95
    clip_param: float = 0.2
    ppo_epoch: int = 8
    num_mini_batch: int = 4
    value_loss_coef: float = 0.5
    entropy_coef: float = 0.01
    max_grad_norm: float = 0.5
    target_kl: float | None = None
