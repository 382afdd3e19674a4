"""The workload as gymnasium environments, and gymnasium's vector of them as SB3 wants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import ollama
from gymnasium.vector import AsyncVectorEnv
from stable_baselines3.common.vec_env import VecEnv

from query_mutator.bench.strategies import Workload
from query_mutator.models.dialects import OllamaDialect


class AskingEnv(gym.Env[Any, Any]):
    """A step is a rewrite and an answer; there is nothing to learn."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (8,), np.float32)
    action_space = gym.spaces.Discrete(4)

    def __init__(self, work: Workload, url: str, index: int) -> None:
        self._work, self._index, self._step = work, index, 0
        self._client = ollama.Client(host=url, trust_env=False)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(8, np.float32), {}

    def step(self, action: Any) -> Any:
        for call in (
            self._work.mutation(self._index, self._step),
            self._work.answer(self._index, self._step),
        ):
            self._client.chat(**OllamaDialect().chat_request(call)[1])
        self._step += 1
        return np.zeros(8, np.float32), 0.0, False, False, {}


class VectorEnvForSB3(VecEnv):
    """gymnasium's vector environments under the interface of SB3's."""

    def __init__(self, envs: AsyncVectorEnv) -> None:
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._envs = envs

    def reset(self) -> Any:
        return self._envs.reset()[0]

    def step_async(self, actions: Any) -> None:
        self._envs.step_async(actions)

    def step_wait(self) -> Any:
        observations, rewards, terminated, truncated, _ = self._envs.step_wait()
        return observations, rewards, terminated | truncated, [{} for _ in rewards]

    def close(self) -> None:
        """The one who made the environments ends them."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        return [seed] * self.num_envs
