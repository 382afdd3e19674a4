"""Ordinary gymnasium environments as a group that the collector can drive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from ppo.steps import ActionMask, EnvStep, Observation


class GymGroup:
    """Environments stepped in the caller's thread, with a reset within the step at each end."""

    def __init__(self, make: Callable[[], gym.Env[Any, Any]], num_envs: int, *, seed: int) -> None:
        self.envs = [make() for _ in range(num_envs)]
        self.num_envs = num_envs
        space, actions = self.envs[0].observation_space, self.envs[0].action_space
        assert isinstance(space, gym.spaces.Box)
        assert isinstance(actions, gym.spaces.Discrete)
        self.observation_size = int(np.prod(space.shape))
        self.num_actions = int(actions.n)
        self._masks = np.ones((num_envs, self.num_actions), bool)
        first = [env.reset(seed=seed * 1000 + i)[0] for i, env in enumerate(self.envs)]
        self._observations = np.stack([self._flat(observation) for observation in first])
        self._returns = [0.0] * num_envs
        self._ended: list[tuple[int, EnvStep[dict[str, Any]]]] = []

    def current(self) -> tuple[Observation, ActionMask]:
        return self._observations, self._masks

    def start(self, index: int, action: int) -> None:
        env = self.envs[index]
        raw, reward, terminated, truncated, info = env.step(action)
        observation = self._flat(raw)
        self._returns[index] += float(reward)
        final, episode_return = None, None
        if terminated or truncated:
            final, episode_return = observation, self._returns[index]
            observation, self._returns[index] = self._flat(env.reset()[0]), 0.0
        step = EnvStep(
            observation,
            self._masks[index],
            float(reward),
            terminated,
            truncated,
            final_observation=final,
            episode_return=episode_return,
            info=info,
        )
        self._ended.append((index, step))

    def expect(self, index: int, action: int) -> None:
        """A step takes no time here: there is nothing to begin on."""

    def wait(self) -> list[tuple[int, EnvStep[dict[str, Any]]]]:
        ended, self._ended = self._ended, []
        for index, step in ended:
            self._observations[index] = step.observation
        return ended

    def _flat(self, observation: Any) -> Observation:
        return np.asarray(observation, np.float32).reshape(self.observation_size)
