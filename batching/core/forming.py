"""Rows of known lengths into batches of at most a budget of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from batching.core.arrays import IntArray, Shuffler, offsets_of, ranges, stable_order, whole
from batching.core.buckets import BucketSpec
from batching.core.overflow import Spans
from batching.core.table import BatchTable

SORTED_BATCHES = 64
"""About how many batches' worth of rows are sorted by length together: enough to pad little, few
enough that a batch meets other rows in every epoch."""


class PadPolicy(StrEnum):
    """What the rows of a batch are padded to."""

    PAD_TO_BUCKET = "pad_to_bucket"
    """The greatest length of their bucket: few shapes, known in advance."""
    PAD_TO_MAX = "pad_to_max"
    """The longest row of the batch: less padding."""


@dataclass(frozen=True)
class Forming:
    """How rows become batches."""

    bucket_spec: BucketSpec
    token_budget: int
    pad_policy: PadPolicy = PadPolicy.PAD_TO_MAX
    drop_last: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "token_budget", whole(self.token_budget, "token_budget"))
        if self.token_budget < 1:
            raise ValueError(f"token_budget must be at least 1, not {self.token_budget}")

    @property
    def longest_row(self) -> int:
        """The most tokens in a row: what the buckets and the budget both allow."""
        return min(self.bucket_spec.overflow_max, self.token_budget)


def form_batches(
    spans: Spans, row_offsets: IntArray, forming: Forming, shuffler: Shuffler | None
) -> tuple[BatchTable, IntArray]:
    """A table of batches, and the indices of the spans in rows that `drop_last` left out.

    Without a shuffler the batches come in the order of their first rows. No row may be longer than
    `forming.longest_row`.
    """
    row_sizes = np.diff(row_offsets)
    ends = np.concatenate(([0], np.cumsum(spans.length)))
    lengths = np.diff(ends[row_offsets])
    if len(lengths) and lengths.max() > forming.longest_row:
        raise ValueError(f"a row of {lengths.max()} tokens is over {forming.longest_row}")

    cut = _cut(lengths, forming, shuffler)
    starts = offsets_of(cut.sizes)[:-1]
    batches = shuffler.order(len(starts)) if shuffler else np.argsort(cut.rows[starts])
    rows = cut.rows[ranges(starts[batches], cut.sizes[batches])]
    entries = ranges(row_offsets[rows], row_sizes[rows])
    table = BatchTable(
        spans.sample[entries],
        spans.start[entries],
        spans.length[entries],
        offsets_of(row_sizes[rows]),
        offsets_of(cut.sizes[batches]),
        cut.widths[batches],
        cut.buckets[batches],
    )
    return table, ranges(row_offsets[cut.left_out], row_sizes[cut.left_out])


class _Cut(NamedTuple):
    """Rows, batch by batch; of each batch its number of rows, width and bucket."""

    rows: IntArray
    sizes: IntArray
    widths: IntArray
    buckets: IntArray
    left_out: IntArray
    """Rows that are in no batch."""


def _cut(lengths: IntArray, forming: Forming, shuffler: Shuffler | None) -> _Cut:
    """Batches of every bucket, bucket by bucket."""
    spec, budget = forming.bucket_spec, forming.token_budget
    order = shuffler.order(len(lengths)) if shuffler else np.arange(len(lengths))
    buckets = spec.bucket_ids(lengths)
    order = order[stable_order(buckets[order])]
    bucket_offsets = offsets_of(np.bincount(buckets, minlength=spec.num_buckets))

    kept: list[IntArray] = []
    left_out: list[IntArray] = [np.zeros(0, np.int64)]
    sizes: list[IntArray] = []
    widths: list[IntArray] = []
    for bucket in range(spec.num_buckets):
        rows = order[bucket_offsets[bucket] : bucket_offsets[bucket + 1]]
        if forming.pad_policy is PadPolicy.PAD_TO_BUCKET:
            widest = min(spec.get_bucket_max(bucket), budget)
            starts = np.arange(0, len(rows), budget // widest)
            width = np.full(len(starts), widest)
        else:
            rows, starts = _cut_by_length(rows, lengths, budget)
            width = np.maximum.reduceat(lengths[rows], starts) if len(rows) else starts
        size = np.diff(np.append(starts, len(rows)))
        if forming.drop_last and len(size) and (size[-1] + 1) * width[-1] <= budget:
            left_out.append(rows[starts[-1] :])
            rows, size, width = rows[: starts[-1]], size[:-1], width[:-1]
        kept.append(rows)
        sizes.append(size)
        widths.append(width)
    return _Cut(
        np.concatenate(kept),
        np.concatenate(sizes),
        np.concatenate(widths),
        np.repeat(np.arange(spec.num_buckets), [len(size) for size in sizes]),
        np.concatenate(left_out),
    )


def _cut_by_length(rows: IntArray, lengths: IntArray, budget: int) -> tuple[IntArray, IntArray]:
    """Rows of like lengths side by side, and where each batch begins among them."""
    lengths = lengths[rows]
    block = np.cumsum(lengths) // (SORTED_BATCHES * budget)
    longest = int(lengths.max(initial=0))
    longest_first = stable_order((block + 1) * longest - lengths)
    rows, lengths = rows[longest_first], lengths[longest_first]
    starts: list[int] = []
    start = 0
    for end in [*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(rows)]:
        while start < end:
            starts.append(start)
            start = min(end, start + budget // int(lengths[start]))
    return rows, np.asarray(starts, np.int64)
