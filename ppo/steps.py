"""What a step of one environment gives, and what a group of environments can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Observation = npt.NDArray[np.float32]
ActionMask = npt.NDArray[np.bool_]
Info = TypeVar("Info")


@dataclass(frozen=True)
class EnvStep(Generic[Info]):
    """The result of one action. At an episode's end the next one has already begun."""

    observation: Observation
    """What to act on next: after an end, the first observation of the next episode."""
    action_mask: ActionMask
    reward: float
    terminated: bool
    truncated: bool
    info: Info
    """What else the environment tells of the step."""
    failed: bool = False
    """A failed step is counted and logged, and never learned from."""
    final_observation: Observation | None = None
    """The last observation of an episode that ended with this step."""
    episode_return: float | None = None
    reset_info: dict[str, Any] | None = None
    """What it tells of the episode that has begun, where one ended."""


class EnvGroup(Protocol[Info]):
    """Environments that each advance at their own pace."""

    num_envs: int
    observation_size: int
    num_actions: int

    def current(self) -> tuple[Observation, ActionMask]:
        """What every environment sees now, and what it may do: a row for each."""

    def start(self, index: int, action: int) -> None:
        """Begins a step of one environment."""

    def expect(self, index: int, action: int) -> None:
        """Told which step is likely to come next; what can be done before it comes may be done."""

    def wait(self) -> list[tuple[int, EnvStep[Info]]]:
        """The steps that have ended, with the index of their environment: at least one."""


class Predictor(Protocol):
    """A policy, as far as acting goes."""

    def predict(
        self, observations: Observation, masks: ActionMask
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
        """Log-probabilities of all actions, and values: a row for each observation."""
