"""What a rollout collected: a row for each step of each environment, and its advantages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ppo.steps import ActionMask, EnvStep, Observation


@dataclass(frozen=True)
class TrainingRows:
    """The valid rows of a rollout, flattened: all that the optimizer ever sees."""

    observations: Tensor
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor

    def __len__(self) -> int:
        return len(self.actions)


class RolloutStorage:
    """Arrays of shape (num_steps, num_envs); a failed step is stored and marked invalid."""

    def __init__(
        self, num_steps: int, num_envs: int, observation_size: int, num_actions: int
    ) -> None:
        shape = (num_steps, num_envs)
        self.num_steps, self.num_envs = shape
        self.observations = np.zeros((*shape, observation_size), np.float32)
        self.masks = np.ones((*shape, num_actions), bool)
        self.actions = np.zeros(shape, np.int64)
        self.log_probs = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)
        self.rewards = np.zeros(shape, np.float32)
        self.terminated = np.zeros(shape, bool)
        self.truncated = np.zeros(shape, bool)
        self.valid = np.zeros(shape, bool)
        self.final_values = np.zeros(shape, np.float32)
        self.advantages = np.zeros(shape, np.float32)
        self.returns = np.zeros(shape, np.float32)

    def record_action(
        self,
        step: int,
        env: int,
        observation: Observation,
        mask: ActionMask,
        action: int,
        log_prob: float,
        value: float,
    ) -> None:
        """What was seen and done. The behaviour policy's log-probability is kept as it acts."""
        self.observations[step, env] = observation
        self.masks[step, env] = mask
        self.actions[step, env] = action
        self.log_probs[step, env] = log_prob
        self.values[step, env] = value

    def record_result(self, step: int, env: int, result: EnvStep[Any]) -> None:
        """What came of it."""
        self.rewards[step, env] = result.reward
        self.terminated[step, env] = result.terminated
        self.truncated[step, env] = result.truncated
        self.valid[step, env] = not result.failed

    def compute_returns(self, last_values: np.ndarray, *, gamma: float, gae_lambda: float) -> None:
        """Generalised advantage estimation (Schulman et al., 2016) over the valid rows.

        A terminated episode is worth nothing more; a truncated one is worth the value of its own
        final observation (`final_values`), not of the next episode's first. A failed step says
        nothing: the step before it bootstraps from the value of the state that it failed in.
        """
        advantage = np.zeros(self.num_envs, np.float32)
        next_values = last_values.astype(np.float32)
        for step in reversed(range(self.num_steps)):
            terminated, truncated = self.terminated[step], self.truncated[step]
            bootstrap = np.where(truncated, self.final_values[step], next_values)
            bootstrap = np.where(terminated, np.float32(0), bootstrap)
            delta = self.rewards[step] + gamma * bootstrap - self.values[step]
            goes_on = ~(terminated | truncated)
            advantage = delta + gamma * gae_lambda * goes_on * advantage
            advantage = np.where(self.valid[step], advantage, 0).astype(np.float32)
            self.advantages[step] = advantage
            next_values = self.values[step]
        self.returns = self.advantages + self.values

    def training_rows(self) -> TrainingRows:
        """The valid rows, in the order of steps and environments."""
        valid = self.valid
        arrays = (
            self.observations,
            self.masks,
            self.actions,
            self.log_probs,
            self.values,
            self.advantages,
            self.returns,
        )
        return TrainingRows(*(torch.from_numpy(array[valid]) for array in arrays))
