"""Builds plans from lengths and settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from batching.core import (
    IntArray,
    Lengths,
    OverflowCounts,
    Spans,
    fit_lengths,
    form_batches,
    ids_and_lengths,
)
from batching.core.arrays import Shuffler
from batching.planning.bins import PackingMode, pack_lengths
from batching.planning.config import BatchingConfig
from batching.planning.epochs import EpochPlan, PlanMeta, Source
from batching.planning.fingerprint import lengths_digest
from batching.planning.plan import BatchPlan
from batching.planning.sharding import Shard


class BatchPlanBuilder:
    """Builds the plan that the lengths and the settings stand for, always the same.

    >>> builder = BatchPlanBuilder({"a": 3, "b": 4}, BatchingConfig.throughput(token_budget=64))
    >>> plan = builder.build(num_epochs=2)
    >>> [batch.sample_ids for batch in plan.iter_epoch(1)]
    [('a', 'b')]
    """

    def __init__(
        self,
        lengths: Lengths,
        batching_config: BatchingConfig,
        dataset_hash: str = "",
        tokenizer_hash: str = "",
    ) -> None:
        self.ids, self.lengths = ids_and_lengths(lengths)
        self.config = batching_config
        self.dataset_hash = dataset_hash
        self.tokenizer_hash = tokenizer_hash
        self._num_epochs = 1
        self._shard: Shard | None = None

    @classmethod
    def from_plan(cls, plan: BatchPlan, lengths: Lengths) -> BatchPlanBuilder:
        """A builder of the same plan: with the lengths it was built from, an equal one."""
        meta = plan.meta
        builder = cls(lengths, meta.config, meta.dataset_hash, meta.tokenizer_hash)
        builder._num_epochs = plan.num_epochs
        builder._shard = meta.shard
        return builder

    def build(self, num_epochs: int | None = None) -> BatchPlan:
        """A plan of so many epochs; without a number, as many as the plan built from, or one."""
        num_epochs = self._num_epochs if num_epochs is None else num_epochs
        if num_epochs < 1:
            raise ValueError(f"num_epochs must be at least 1, not {num_epochs}")
        meta = PlanMeta(
            self.config,
            Source(len(self.lengths), lambda: lengths_digest(self.ids, self.lengths)),
            dataset_hash=self.dataset_hash,
            tokenizer_hash=self.tokenizer_hash,
        )
        spans, counts = fit_lengths(
            self.lengths,
            self.ids,
            limit=self.config.longest_row,
            min_length=self.config.min_length,
            policy=self.config.on_overflow,
        )
        epochs = (self._epoch(epoch, spans, counts) for epoch in range(num_epochs))
        plan = BatchPlan(meta, tuple(epochs))
        shard = self._shard
        return plan.shard(shard.rank, shard.world_size, shard.remainder) if shard else plan

    def _epoch(self, epoch: int, spans: Spans, counts: OverflowCounts) -> EpochPlan:
        config = self.config
        shuffler = Shuffler(config.seed + epoch) if config.shuffle else None
        spans, row_offsets = self._rows(spans, shuffler)
        table, left_out = form_batches(spans, row_offsets, config.forming, shuffler)
        lost_tokens = counts.lost_tokens + int(spans.length[left_out].sum())
        counts = replace(counts, dropped=len(left_out), lost_tokens=lost_tokens)
        return EpochPlan(epoch, table, self.ids, counts)

    def _rows(self, spans: Spans, shuffler: Shuffler | None) -> tuple[Spans, IntArray]:
        """The spans row by row, and where each row begins among them."""
        packing = self.config.packing
        if not packing:
            return spans, np.arange(len(spans.sample) + 1)
        count = len(spans.sample)
        # Among equal lengths the order decides who shares a row: each epoch has its own. The other
        # modes follow the order of the samples; of them only the rows are shuffled.
        by_length = packing.mode is PackingMode.BEST_FIT
        order = shuffler.order(count) if shuffler and by_length else np.arange(count)
        bins = pack_lengths(spans.length[order], packing.max_length, packing.mode)
        return spans.take(order[bins.items]), bins.offsets
