"""Plans: the batches of all epochs, fixed in advance, with the settings they follow from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from batching.core import BatchMetrics, BatchSpec
from batching.planning.epochs import EpochPlan, PlanParts
from batching.planning.files import load_plan, save_parts, save_plan
from batching.planning.sharding import RemainderPolicy, Shard, shard_table


@dataclass(frozen=True, eq=False)
class BatchPlan(PlanParts):
    """The batches of one or more epochs; `BatchPlanBuilder` makes them."""

    @property
    def num_epochs(self) -> int:
        """The number of epochs."""
        return len(self.epochs)

    @property
    def num_batches(self) -> int:
        """The number of steps in all epochs."""
        return sum(map(len, self.epochs))

    @property
    def metrics(self) -> BatchMetrics:
        """How well the batches of all epochs use their tokens."""
        return sum((epoch.metrics for epoch in self.epochs), BatchMetrics())

    def epoch(self, epoch: int) -> EpochPlan:
        """The plan of one epoch."""
        if not 0 <= epoch < self.num_epochs:
            raise ValueError(f"no epoch {epoch}: the plan has {self.num_epochs}")
        return self.epochs[epoch]

    def iter_epoch(self, epoch: int = 0) -> Iterator[BatchSpec]:
        """The batches of an epoch, in order."""
        return iter(self.epoch(epoch))

    def iter_from(self, epoch: int, index: int) -> Iterator[BatchSpec]:
        """What `iter_epoch` gives from its batch `index` on: how a run goes on after a stop."""
        plan = self.epoch(epoch)
        if not 0 <= index <= len(plan):
            raise ValueError(f"epoch {epoch} has {len(plan)} batches; none at {index}")
        return plan.table.specs(plan.ids, first=index)

    def shard(
        self,
        rank: int,
        world_size: int,
        remainder: RemainderPolicy | str = RemainderPolicy.SPLIT,
    ) -> BatchPlan:
        """The part of one rank: every rank has the same number of steps in every epoch."""
        if self.meta.shard:
            raise ValueError("the plan is a shard already: shard the plan that it comes from")
        shard = Shard(rank, world_size, RemainderPolicy(remainder))
        epochs = []
        for epoch in self.epochs:
            table, counts = shard_table(epoch.table, shard)
            epochs.append(replace(epoch, table=table, shard_counts=counts, is_shard=True))
        return BatchPlan(replace(self.meta, shard=shard), tuple(epochs))

    def save(self, path: str | Path) -> None:
        """Writes the plan as a directory, whole or not at all."""
        save_plan(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> BatchPlan:
        """Reads a plan that `save` wrote; `UserError` where it is torn or was changed."""
        parts = load_plan(Path(path))
        return cls(parts.meta, parts.epochs)


def save_shards(
    plan: BatchPlan,
    world_size: int,
    path: Path,
    remainder: RemainderPolicy | str = RemainderPolicy.SPLIT,
) -> list[Path]:
    """Writes the part of each rank as `rank_N/`, all or none; returns where they are.

    They take the place of shards that may be there.
    """
    return save_parts((plan.shard(rank, world_size, remainder) for rank in range(world_size)), path)
