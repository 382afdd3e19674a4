"""All valid rows of a run so far: old returns tell as much of an action's worth as new ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ppo.storage import TrainingRows


@dataclass(frozen=True)
class Memory:
    """What was seen, what could be done, what was done, and what came of it."""

    observations: Tensor
    masks: Tensor
    actions: Tensor
    returns: Tensor

    @classmethod
    def empty(cls, observation_size: int, num_actions: int) -> Memory:
        return cls(
            torch.zeros((0, observation_size)),
            torch.zeros((0, num_actions), dtype=torch.bool),
            torch.zeros(0, dtype=torch.int64),
            torch.zeros(0),
        )

    def __len__(self) -> int:
        return len(self.actions)

    def with_rows(self, rows: TrainingRows, most: int) -> Memory:
        """These and a rollout's, the newest `most` of them."""
        added = (rows.observations, rows.masks, rows.actions, rows.returns)
        mine = (self.observations, self.masks, self.actions, self.returns)
        return Memory(*(torch.cat(pair)[-most:] for pair in zip(mine, added, strict=True)))
