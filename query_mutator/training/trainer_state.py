"""What a checkpoint holds of a run in training, and taking it up again."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ppo import PPO
from query_mutator.base.stored import stored_as
from query_mutator.environment.group import BatchedQueryMutationEnv
from query_mutator.environment.keeping import Keeper
from query_mutator.objectives.version import SCORING, UNTOLD, is_versioned
from query_mutator.runs.checkpoints import (
    KEEPER,
    POLICY,
    Checkpoint,
    misfit_told,
    set_policy,
    tensor_bytes,
    tensor_like,
)
from query_mutator.runs.scores import SCORED_BY
from query_mutator.training.counts import RunCounts

OPTIMIZER = "optimizer."
OBSERVATIONS = "envs.observations"
TORCH_GENERATOR = "random.torch"
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Learner:
    """The parts of a run that change as it learns."""

    algorithm: PPO
    envs: BatchedQueryMutationEnv
    generators: list[np.random.Generator]
    """One for the actions of each environment."""
    shuffle: np.random.Generator
    keeper: Keeper | None = None
    """What says which answer to keep; None where that is the last."""

    def seed_globals(self, seed: int) -> None:
        """Seeds the generators that nothing here draws from, but a user's objective may."""
        random.seed(seed)
        np.random.seed(seed)

    def checkpoint(self, counts: dict[str, Any], curves: dict[str, int]) -> Checkpoint:
        """A copy of everything, with what the run has counted and the sizes of its curves."""
        tensors = {
            f"{POLICY}{name}": value.clone()
            for name, value in self.algorithm.policy.state_dict().items()
        }
        optimizer = self.algorithm.optimizer.state_dict()
        for number, values in optimizer["state"].items():
            for name, value in values.items():
                tensors[f"{OPTIMIZER}{number}.{name}"] = value.clone()
        tensors[OBSERVATIONS] = torch.from_numpy(self.envs.current()[0].copy())
        tensors[TORCH_GENERATOR] = torch.get_rng_state()
        _, keys, *rest = np.random.get_state(legacy=True)
        assert isinstance(keys, np.ndarray)
        state = {
            "learning_rate": optimizer["param_groups"][0]["lr"],
            "optimizer_begun": bool(optimizer["state"]),
            "generators": [generator.bit_generator.state for generator in self.generators],
            "shuffle": self.shuffle.bit_generator.state,
            "python_random": random.getstate(),
            "numpy_random": [keys.tolist(), *rest],
            "envs": self.envs.get_state(),
            SCORED_BY: SCORING,
            "counts": deepcopy(counts),
            "curves": dict(curves),
        }
        if self.keeper is not None:
            state[KEEPER] = self.keeper.plain()
        return Checkpoint(tensors, state)

    def take_up(self, checkpoint: Checkpoint, run: Path) -> None:
        """Goes on where the checkpoint of `run` was made; `UserError` where it does not fit."""
        tensors, state = checkpoint.tensors, checkpoint.state
        parameters = list(self.algorithm.policy.parameters())
        with misfit_told(run):
            set_policy(self.algorithm.policy, tensors)
            optimizer = self.algorithm.optimizer.state_dict()
            if state["optimizer_begun"]:
                optimizer["state"] = {
                    number: {
                        "step": tensor_like(
                            tensors, f"{OPTIMIZER}{number}.step", torch.tensor(0.0)
                        ),
                        **{
                            name: tensor_like(tensors, f"{OPTIMIZER}{number}.{name}", parameter)
                            for name in MOMENTS
                        },
                    }
                    for number, parameter in enumerate(parameters)
                }
            for group in optimizer["param_groups"]:
                group["lr"] = stored_as(float, state["learning_rate"], "learning_rate")
            self.algorithm.optimizer.load_state_dict(optimizer)
            if self.keeper is not None:
                self.keeper.take_up(state[KEEPER])
            self.shuffle.bit_generator.state = state["shuffle"]
            version, numbers, gauss = state["python_random"]
            random.setstate((version, tuple(numbers), gauss))
            _set_numpy(state["numpy_random"])
            torch.set_rng_state(tensor_like(tensors, TORCH_GENERATOR, torch.get_rng_state()))
            self.go_back(checkpoint)

    def go_back(self, checkpoint: Checkpoint) -> None:
        """Takes the environments, and the generators of their actions, to where they were."""
        state = checkpoint.state
        for generator, saved in zip(self.generators, state["generators"], strict=True):
            generator.bit_generator.state = saved
        seen = torch.from_numpy(self.envs.current()[0])
        observations = tensor_like(checkpoint.tensors, OBSERVATIONS, seen).numpy()
        self.envs.set_state(state["envs"], observations)

    def score_again(self, checkpoint: Checkpoint, objective: str) -> bool:
        """Has the episodes of a checkpoint scored by today's score; False where they are."""
        if checkpoint.state.get(SCORED_BY, UNTOLD) == SCORING or not is_versioned(objective):
            return False
        for env in self.envs.envs:
            env.score_again()
        return True

    @property
    def tensor_bytes(self) -> int:
        """More than the tensors of a checkpoint take."""
        return tensor_bytes(self.algorithm.policy) + self.envs.current()[0].nbytes


ADDED = {"refused_rewrites", "dropped_rewrites"}
"""What runs have not always counted: those of before go on at 0."""


def read_counts(saved: Any) -> RunCounts:
    """The counts that were saved, all of them; raises ValueError for anything else."""
    counts = stored_as(RunCounts, saved)
    if set(saved) | ADDED != set(vars(counts)):
        raise ValueError("the counts are others than this version keeps")
    return counts


def _set_numpy(saved: Any) -> None:
    keys, position, has_gauss, gauss = saved
    if not 0 <= position <= len(keys):  # numpy itself would read beyond its memory
        raise ValueError("numpy_random is not the state of a generator")
    np.random.set_state(("MT19937", keys, position, has_gauss, gauss))
