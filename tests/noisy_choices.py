"""Episodes of one choice, whose worth is known and whose reward is noisy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

Worths = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float64]]


class NoisyChoices(gym.Env[npt.NDArray[np.float32], np.int64]):
    """Action 0 is worth nothing and has no noise."""

    def __init__(self, worth: Worths, size: int, num_actions: int, noise: float) -> None:
        self.observation_space = gym.spaces.Box(0.0, 1.0, (size,), np.float32)
        self.action_space = gym.spaces.Discrete(num_actions)
        self._worth, self._noise = worth, noise
        self._seen = np.zeros(size, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        shape = self._seen.shape
        self._seen = self.np_random.uniform(0, 1, shape).astype(np.float32)
        return self._seen, {}

    def step(
        self, action: np.int64 | int
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        reward = float(self._worth(self._seen[None])[0, int(action)])
        if action:
            reward += self._noise * float(self.np_random.standard_normal())
        return self._seen, reward, True, False, {}
