"""A policy with a critic for each action."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ppo.policy import MASKED_LOGIT, acting, network
from ppo.worth import Worth

FIRST_LOGIT_OF_NOTHING = 1.0
"""Of action 0 before anything is learned: doing nothing is where a policy starts."""


class Chooser(nn.Module):
    """Logits of the actions by a network, and what each action is worth by a regression."""

    def __init__(self, observation_size: int, num_actions: int, hidden_size: int = 0) -> None:
        super().__init__()
        self.observation_size, self.num_actions = observation_size, num_actions
        self.actor = network(observation_size, hidden_size, num_actions, last_gain=0.01)
        last = self.actor[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.bias[0] = FIRST_LOGIT_OF_NOTHING
        size = observation_size + 1
        self.register_buffer("worth_weights", torch.zeros((num_actions, size), dtype=torch.float64))

    def set_worth(self, worth: Worth) -> None:
        """Takes over what a regression has found."""
        self.get_buffer("worth_weights").copy_(torch.from_numpy(worth.weights))

    def log_probs(self, observations: Tensor, masks: Tensor) -> Tensor:
        """Of all actions; masked ones have none."""
        logits = self.actor(observations).masked_fill(~masks, MASKED_LOGIT)
        return torch.log_softmax(logits, dim=-1)

    def forward(self, observations: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of all actions, and what the policy is worth."""
        log_probs = self.log_probs(observations, masks)
        weights = self.get_buffer("worth_weights").float()
        worth = observations @ weights[:, :-1].T + weights[:, -1]
        return log_probs, (log_probs.exp() * worth).sum(-1)

    def predict(
        self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
        """As `forward`, for acting; FloatingPointError where something is no number."""
        return acting(self, observations, masks)
