"""A small actor-critic for discrete actions, some of which may be masked."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

MASKED_LOGIT = -1e8
"""Finite, so that a probability of 0 times its logarithm is 0 and not a NaN."""


class ActorCritic(nn.Module):
    """Two separate networks: logits of the actions, and the value of the observation.

    With a `hidden_size` of 0 both are linear.
    """

    def __init__(self, observation_size: int, num_actions: int, hidden_size: int = 64) -> None:
        super().__init__()
        self.num_actions = num_actions
        # A small last gain makes the first policy nearly uniform.
        self.actor = network(observation_size, hidden_size, num_actions, last_gain=0.01)
        # A linear critic starts near 0: no hidden layer scales its inputs.
        self.critic = network(
            observation_size, hidden_size, 1, last_gain=1.0 if hidden_size else 0.01
        )

    def forward(self, observations: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of all actions (masked ones have none), and values."""
        logits = self.actor(observations).masked_fill(~masks, MASKED_LOGIT)
        return torch.log_softmax(logits, dim=-1), self.critic(observations).squeeze(-1)

    def predict(
        self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
        """As `forward`, for acting; FloatingPointError where something is no number."""
        return acting(self, observations, masks)


@torch.no_grad()
def acting(
    policy: nn.Module, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
    """What a policy says, for acting: log-probabilities in double precision, and values.

    Raises FloatingPointError where they are no numbers.
    """
    log_probs, values = policy(torch.from_numpy(observations), torch.from_numpy(masks))
    if not (torch.isfinite(log_probs).all() and torch.isfinite(values).all()):
        raise FloatingPointError("what the policy gives is infinite or not a number")
    return log_probs.numpy().astype(np.float64), values.numpy()


def sample_action(log_probs: npt.NDArray[np.float64], generator: np.random.Generator) -> int:
    """An action drawn from one row of log-probabilities, with the environment's own generator."""
    cumulative = np.cumsum(np.exp(log_probs))
    draw = generator.random() * cumulative[-1]
    return int(np.searchsorted(cumulative, draw, side="right"))


def network(inputs: int, hidden: int, outputs: int, *, last_gain: float) -> nn.Sequential:
    """Two hidden layers of tanh; with none, a linear layer."""
    sizes = [inputs, hidden, hidden, outputs] if hidden else [inputs, outputs]
    gains = [math.sqrt(2)] * (len(sizes) - 2) + [last_gain]
    layers: list[nn.Module] = []
    for (before, after), gain in zip(itertools.pairwise(sizes), gains, strict=True):
        layer = nn.Linear(before, after)
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers[:-1])
