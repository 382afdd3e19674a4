"""PPO for few and noisy returns: all actions count, and all rows seen so far.

The clipped surrogate of Schulman et al. (2017) weighs the action that was taken. Where a critic
tells what each action is worth, the sum over all actions can be taken instead (Asadi et al., "Mean
actor critic", 2017): nothing hangs on which of them the policy happened to try. And the critic does
not mind how old a row is, so that every update learns from all of them. A pull towards the first
policy, which mostly does nothing, stands in place of a bonus for entropy: an action must be worth
more than the pull to be taken.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import torch
from torch import Tensor, nn

from ppo.algorithm import (
    ADAM_EPSILON,
    UpdateStats,
    check_finite,
    explained_variance,
    summarised,
)
from ppo.chooser import FIRST_LOGIT_OF_NOTHING, Chooser
from ppo.memory import Memory
from ppo.policy import MASKED_LOGIT
from ppo.settings import PPOSettings
from ppo.storage import RolloutStorage
from ppo.worth import fit_worth

ROWS_IN_A_BATCH = 256
MOST_ROWS = 16_384
PULL = 0.02
"""To the first policy, in units of return."""


class AllActionPPO:
    """Improves a policy from rollouts, all of those so far.

    For episodes of one step: the return of an old row is then what it would be today. Of the
    settings, the learning rate, the epochs, the clip and the largest norm count.
    """

    def __init__(self, policy: Chooser, settings: PPOSettings, *, pull: float = PULL) -> None:
        self.policy = policy
        self.settings = settings
        self.pull = pull
        self.optimizer = torch.optim.Adam(policy.actor.parameters(), settings.lr, eps=ADAM_EPSILON)
        self.memory = Memory.empty(policy.observation_size, policy.num_actions)

    def update(self, storage: RolloutStorage, generator: np.random.Generator) -> UpdateStats:
        """One update; `FloatingPointError` where it leads to what is no number."""
        rows = storage.training_rows()
        if len(rows) == 0:
            return UpdateStats()
        self.memory = memory = self.memory.with_rows(rows, MOST_ROWS)
        worth = fit_worth(
            memory.observations.numpy(),
            memory.actions.numpy(),
            memory.returns.numpy(),
            self.policy.num_actions,
        )
        self.policy.set_worth(worth)
        worths = torch.from_numpy(worth.of(memory.observations.numpy())).float()
        check_finite("worth", worths)
        with torch.no_grad():
            before = self.policy.log_probs(memory.observations, memory.masks)
        advantages = worths - (before.exp() * worths).sum(1, keepdim=True)
        parts = ceil(len(memory) / ROWS_IN_A_BATCH)
        measured = [
            self._step(before, advantages, torch.from_numpy(chosen))
            for _ in range(self.settings.ppo_epoch)
            for chosen in np.array_split(generator.permutation(len(memory)), parts)
        ]
        told = worth.of(rows.observations.numpy())[np.arange(len(rows)), rows.actions.numpy()]
        told_values = torch.from_numpy(told).float()
        value_loss = 0.5 * (told_values - rows.returns).square().mean().item()
        return replace(
            summarised(
                measured, explained=explained_variance(told_values, rows.returns), rows=len(rows)
            ),
            value_loss=value_loss,
        )

    def _step(self, before: Tensor, advantages: Tensor, chosen: Tensor) -> dict[str, float]:
        """One optimizer step on some of the rows, whose policy before the update is given."""
        settings, memory = self.settings, self.memory
        log_probs = self.policy.log_probs(memory.observations[chosen], memory.masks[chosen])
        old, advantage = before[chosen], advantages[chosen]
        log_ratio = log_probs - old
        ratio = log_ratio.exp()
        bounded = ratio.clamp(1 - settings.clip_param, 1 + settings.clip_param)
        weights = old.exp()
        policy_loss = -(weights * torch.min(ratio * advantage, bounded * advantage)).sum(1).mean()
        pulled = (log_probs.exp() * (log_probs - self._first(memory.masks[chosen]))).sum(1).mean()
        loss = policy_loss + self.pull * pulled
        check_finite("policy loss", policy_loss)
        check_finite("loss", loss)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.actor.parameters(), settings.max_grad_norm)
        check_finite("gradient", norm)
        self.optimizer.step()
        with torch.no_grad():
            moved = (ratio - 1).abs() > settings.clip_param
            return {
                "loss": loss.item(),
                "policy_loss": policy_loss.item(),
                "entropy": float(-(log_probs.exp() * log_probs).sum(1).mean()),
                "approx_kl": float((weights * (ratio - 1 - log_ratio)).sum(1).mean()),
                "clip_fraction": float((weights * moved).sum(1).mean()),
                "norm_before_clip": norm.item(),
            }

    def _first(self, masks: Tensor) -> Tensor:
        """The log-probabilities that the policy began with, and is pulled to."""
        logits = torch.zeros(masks.shape)
        logits[:, 0] = FIRST_LOGIT_OF_NOTHING
        return torch.log_softmax(logits.masked_fill(~masks, MASKED_LOGIT), dim=-1)
