"""What a plan is made of: where it comes from, and the batches of each epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from batching.core import BatchMetrics, BatchSpec, BatchTable, OverflowCounts
from batching.planning.config import BatchingConfig
from batching.planning.fingerprint import settings_digest, table_digest
from batching.planning.sharding import Shard, ShardCounts

VERSION = 1
"""Of the files, and of the way from settings and lengths to batches: a change in either counts."""


@dataclass(frozen=True, eq=False)
class Source:
    """The samples that a plan was built from. Their digest is computed when it is asked for: it
    takes longer than the plan."""

    num_samples: int
    compute_digest: Callable[[], str]

    @cached_property
    def digest(self) -> str:
        """Of the ids and lengths of all samples, in their order."""
        return self.compute_digest()


@dataclass(frozen=True, eq=False)
class PlanMeta:
    """Where a plan comes from: with the lengths, it is all that is needed to build it again."""

    config: BatchingConfig
    source: Source
    dataset_hash: str = ""
    tokenizer_hash: str = ""
    shard: Shard | None = None
    version: int = VERSION

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "version": self.version,
            "config": self.config.to_dict(),
            "dataset_hash": self.dataset_hash,
            "tokenizer_hash": self.tokenizer_hash,
            "num_samples": self.source.num_samples,
            "lengths_digest": self.source.digest,
            "shard": asdict(self.shard) if self.shard else None,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> PlanMeta:
        """What `to_dict` gave; `ValueError`, `KeyError` or `TypeError` for anything else."""
        digest, shard = stored["lengths_digest"], stored["shard"]
        meta = cls(
            BatchingConfig.from_dict(stored["config"]),
            Source(stored["num_samples"], lambda: digest),
            dataset_hash=stored["dataset_hash"],
            tokenizer_hash=stored["tokenizer_hash"],
            shard=Shard(**shard) if shard else None,
            version=stored["version"],
        )
        if meta.to_dict() != stored:
            raise ValueError("something in it is of the wrong kind or unknown")
        return meta


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The batches of one epoch, in order."""

    epoch: int
    table: BatchTable
    ids: Sequence[str]
    """The ids that the table's samples refer to."""
    counts: OverflowCounts = field(default_factory=OverflowCounts)
    """What is not in the batches as it is in the data."""
    shard_counts: ShardCounts = field(default_factory=ShardCounts)
    is_shard: bool = False
    """Whether it is the part of one rank: both counts are those of all ranks together."""

    def __len__(self) -> int:
        return self.table.num_batches

    def __getitem__(self, index: int) -> BatchSpec:
        if not -len(self) <= index < len(self):
            raise IndexError(f"epoch {self.epoch} has {len(self)} batches, none at {index}")
        return self.table.spec(index % len(self), self.ids)

    def __iter__(self) -> Iterator[BatchSpec]:
        return self.table.specs(self.ids)

    @property
    def num_batches(self) -> int:
        """The number of steps in the epoch."""
        return len(self)

    @property
    def metrics(self) -> BatchMetrics:
        """How well the batches use their tokens."""
        return BatchMetrics.of(self.table, None if self.is_shard else self.counts)

    @cached_property
    def digest(self) -> str:
        """Changes with any change of the batches or their order."""
        return table_digest(self.table, self.ids)

    def summary(self) -> dict[str, Any]:
        """What the plan's fingerprint and `meta.json` hold of the epoch."""
        return {
            "epoch": self.epoch,
            "num_batches": len(self),
            "digest": self.digest,
            "counts": asdict(self.counts),
            "shard_counts": asdict(self.shard_counts),
        }


@dataclass(frozen=True, eq=False)
class PlanParts:
    """All that a plan is; what is done with it is in `BatchPlan`."""

    meta: PlanMeta
    epochs: tuple[EpochPlan, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Changes with any setting, any batch, their order, and the lengths built from."""
        return settings_digest(
            {**self.meta.to_dict(), "epochs": [epoch.summary() for epoch in self.epochs]}
        )
