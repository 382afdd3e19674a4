"""Plans on several ranks, and where a run stands in its plan."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from batching.core import BatchSpec
from batching.planning.plan import BatchPlan
from batching.planning.sharding import RemainderPolicy
from query_mutator.base.errors import UserError


@dataclass(frozen=True)
class DistributedConfig:
    """Which of how many processes this is, over all machines and on this one."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1

    def __post_init__(self) -> None:
        for rank, size in (("rank", "world_size"), ("local_rank", "local_world_size")):
            if not 0 <= getattr(self, rank) < getattr(self, size):
                raise ValueError(
                    f"{rank} {getattr(self, rank)} is not below {size} {getattr(self, size)}"
                )
        if self.local_world_size > self.world_size:
            raise ValueError(
                f"local_world_size {self.local_world_size} is over world_size {self.world_size}"
            )

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> DistributedConfig:
        """What torchrun and its like set: RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE.

        >>> DistributedConfig.from_env({"RANK": "1", "WORLD_SIZE": "4"}).is_main
        False
        """
        environment = os.environ if environment is None else environment
        for one, other in (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE")):
            if other in environment and one not in environment and environment[other] != "1":
                # Otherwise every process would take itself for the first.
                raise UserError(
                    f"the environment has {other} and no {one}.\nSet both, or none of them."
                )
        numbers: dict[str, int] = {}
        for field in fields(cls):
            text = environment.get(field.name.upper())
            if text is None:
                continue
            try:
                numbers[field.name] = int(text)
            except ValueError:
                raise UserError(
                    f"the environment has {field.name.upper()}={text!r}, which is no whole number"
                ) from None
        try:
            return cls(**numbers)
        except ValueError as error:
            raise UserError(
                f"the environment does not fit together: {error}.\n"
                "Set RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, or none of them."
            ) from error

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes for all."""
        return self.rank == 0


def shard_batch_plan(
    plan: BatchPlan,
    config: DistributedConfig,
    remainder: RemainderPolicy | str = RemainderPolicy.SPLIT,
) -> BatchPlan:
    """The part of a plan that is this process's own."""
    return plan.shard(config.rank, config.world_size, remainder)


def interleave_microbatches(
    plans: Sequence[BatchPlan], epoch: int = 0
) -> Iterator[tuple[int, BatchSpec]]:
    """The batches of several plans in turn, each with the index of its plan.

    Over all shards of a plan this is the order of that plan. A plan that has ended is passed over.
    """
    running = list(enumerate(plan.iter_epoch(epoch) for plan in plans))
    while running:
        still_running = []
        for index, batches in running:
            batch = next(batches, None)
            if batch is not None:
                yield index, batch
                still_running.append((index, batches))
        running = still_running


@dataclass(frozen=True)
class CheckpointPosition:
    """Where a run stands: what `plan.iter_from(epoch, microbatch_idx)` needs to go on.

    >>> CheckpointPosition.from_dict(CheckpointPosition(1, 20, global_step=5).to_dict())
    CheckpointPosition(epoch=1, microbatch_idx=20, global_step=5)
    """

    epoch: int
    microbatch_idx: int
    """The next batch to take."""
    global_step: int = 0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} must be a whole number from 0 on, not {value!r}")

    def to_dict(self) -> dict[str, int]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> CheckpointPosition:
        """What `to_dict` gave; `ValueError` for anything else."""
        if set(stored) != {field.name for field in fields(cls)}:
            raise ValueError(f"a position has epoch, microbatch_idx and global_step, not {stored}")
        return cls(**stored)
