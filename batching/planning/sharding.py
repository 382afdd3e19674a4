"""Batches dealt out to ranks, so that every rank has as many steps as any other."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from batching.core import BatchTable, IntArray
from query_mutator.base.errors import UserError


class RemainderPolicy(StrEnum):
    """What evens out the steps when the batches cannot be divided by the ranks."""

    SPLIT = "split"
    """Cut the batches of most rows into smaller ones: nothing is lost, nothing comes twice. Where
    there are not enough rows for that, repeat."""
    REPEAT = "repeat"
    """Let the first batches come a second time."""
    DROP = "drop"
    """Leave the last batches out."""


@dataclass(frozen=True)
class Shard:
    """Which part of a plan a rank has."""

    rank: int
    world_size: int
    remainder: RemainderPolicy = RemainderPolicy.SPLIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "remainder", RemainderPolicy(self.remainder))
        if self.world_size < 1:
            raise ValueError(f"world_size must be at least 1, not {self.world_size}")
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank must be from 0 to {self.world_size - 1}, not {self.rank}")


@dataclass(frozen=True)
class ShardCounts:
    """What was done to an epoch, over all ranks, to give each as many steps."""

    split: int = 0
    """Batches that came about by cutting others."""
    repeated: int = 0
    """Batches that come twice."""
    dropped: int = 0
    """Batches that no rank has."""


def shard_table(table: BatchTable, shard: Shard) -> tuple[BatchTable, ShardCounts]:
    """The batches of one rank: every `world_size`-th, as many as every other rank has."""
    world_size = shard.world_size
    missing = -table.num_batches % world_size
    counts = ShardCounts()
    batches = np.arange(table.num_batches)
    if missing and shard.remainder is RemainderPolicy.DROP:
        if table.num_batches < world_size:
            raise UserError(
                f"{table.num_batches} batches for {world_size} ranks: dropping what is over leaves "
                "none.\nTake fewer ranks, or even out otherwise: split or repeat."
            )
        counts = ShardCounts(dropped=world_size - missing)
        batches = batches[: len(batches) - counts.dropped]
    elif (
        missing
        and shard.remainder is RemainderPolicy.SPLIT
        and table.num_rows >= table.num_batches + missing
    ):
        counts = ShardCounts(split=missing)
        table = table.split(_parts(table.rows_per_batch, missing))
        batches = np.arange(table.num_batches)
    elif missing:
        counts = ShardCounts(repeated=missing)
        batches = np.resize(batches, len(batches) + missing)
    return table.take(batches[shard.rank :: world_size]), counts


def _parts(rows: IntArray, more: int) -> IntArray:
    """Into how many parts to cut each batch so that there are `more`: the largest part first."""
    parts = np.ones(len(rows), np.int64)
    # No more than `more` batches can be needed, and they are among the largest.
    largest = np.argsort(-rows, kind="stable")[: max(more, 1)]
    queue = [(-int(rows[batch]), int(batch)) for batch in largest]
    heapq.heapify(queue)
    for _ in range(more):
        _, batch = queue[0]
        parts[batch] += 1
        heapq.heapreplace(queue, (-int(rows[batch]) // int(parts[batch]), batch))
    return parts
