"""The integer-array core: which tokens stand in which row of which batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from batching.core.arrays import IntArray, offsets_of, ranges

Span = tuple[int, int]
"""Where the tokens of an entry begin in their sample, and how many they are."""
UNKNOWN = -1
"""The length of an entry of a batch that was made without spans."""


@dataclass(frozen=True)
class BatchSpec:
    """One batch: the samples in it, row by row, and the shape that they are padded to."""

    sample_ids: tuple[str, ...]
    bucket_id: int
    max_length: int
    """The width of the batch: every row is padded to it."""
    token_count: int
    """Rows times width, padding included: what the budget bounds."""
    spans: tuple[Span, ...] = ()
    """Start and length of each sample's part; empty where samples are whole."""
    rows: tuple[int, ...] = ()
    """How many samples stand in each row: 1, unless rows are packed."""

    def __post_init__(self) -> None:
        if not self.rows:
            object.__setattr__(self, "rows", (1,) * len(self.sample_ids))
        if sum(self.rows) != len(self.sample_ids):
            raise ValueError(f"rows hold {sum(self.rows)} of {len(self.sample_ids)} samples")
        if self.spans and len(self.spans) != len(self.sample_ids):
            raise ValueError(f"{len(self.spans)} spans for {len(self.sample_ids)} samples")
        if self.token_count != len(self.rows) * self.max_length:
            raise ValueError(
                f"token_count {self.token_count} is not {len(self.rows)} rows of {self.max_length}"
            )

    @property
    def batch_size(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def real_tokens(self) -> int:
        """Tokens without padding; `ValueError` where there are no spans to tell."""
        if self.sample_ids and not self.spans:
            raise ValueError("a batch without spans does not tell how many tokens it holds")
        return sum(length for _, length in self.spans)

    def row_entries(self) -> Iterator[list[tuple[str, int, int]]]:
        """For each row: the id, the start and the length of what stands in it, in order."""
        spans = self.spans or ((0, UNKNOWN),) * len(self.sample_ids)
        entries = [(name, *span) for name, span in zip(self.sample_ids, spans, strict=True)]
        for first, last in pairwise(accumulate(self.rows, initial=0)):
            yield entries[first:last]


@dataclass(frozen=True, eq=False)
class BatchTable:
    """Entries in rows in batches. An entry is a sample or a part of one.

    Sampler, plan, packing and rolling window share it: a million samples are a few arrays, and a
    `BatchSpec` is made only for a batch that somebody looks at.
    """

    sample: IntArray
    """Of each entry: the index of its sample."""
    start: IntArray
    length: IntArray
    row_offsets: IntArray
    """Row r holds the entries from `row_offsets[r]` to before `row_offsets[r + 1]`."""
    batch_offsets: IntArray
    """Batch b holds the rows from `batch_offsets[b]` to before `batch_offsets[b + 1]`."""
    width: IntArray
    """Of each batch: the length that its rows are padded to."""
    bucket: IntArray

    @property
    def num_batches(self) -> int:
        return len(self.width)

    @property
    def num_rows(self) -> int:
        return len(self.row_offsets) - 1

    @property
    def num_entries(self) -> int:
        return len(self.sample)

    @property
    def rows_per_batch(self) -> IntArray:
        return np.diff(self.batch_offsets)

    @property
    def token_counts(self) -> IntArray:
        """Of each batch: rows times width, which never exceeds the budget."""
        return self.rows_per_batch * self.width

    @property
    def row_lengths(self) -> IntArray:
        """Of each row: its tokens, without padding."""
        ends = np.concatenate(([0], np.cumsum(self.length)))
        return np.diff(ends[self.row_offsets])

    @property
    def real_tokens(self) -> int:
        """All tokens, without padding."""
        return int(self.length.sum())

    def entries(self, batch: int) -> slice:
        """Where the entries of a batch stand."""
        first, last = self.batch_offsets[batch : batch + 2]
        return slice(int(self.row_offsets[first]), int(self.row_offsets[last]))

    def take(self, batches: npt.ArrayLike) -> BatchTable:
        """A table of these batches, in this order."""
        batches = np.asarray(batches, np.int64)
        rows_each = self.rows_per_batch[batches]
        rows = ranges(self.batch_offsets[batches], rows_each)
        entries_each = np.diff(self.row_offsets)[rows]
        entries = ranges(self.row_offsets[rows], entries_each)
        return BatchTable(
            self.sample[entries],
            self.start[entries],
            self.length[entries],
            offsets_of(entries_each),
            offsets_of(rows_each),
            self.width[batches],
            self.bucket[batches],
        )

    def split(self, parts: npt.ArrayLike) -> BatchTable:
        """A table in which each batch is cut into so many of almost equal numbers of rows."""
        parts = np.asarray(parts, np.int64)
        if ((parts < 1) | (parts > self.rows_per_batch)).any():
            raise ValueError("a batch can be cut into at most as many parts as it has rows")
        batch = np.repeat(np.arange(self.num_batches), parts)
        part = ranges(np.zeros_like(parts), parts)
        starts = self.batch_offsets[batch] + part * self.rows_per_batch[batch] // parts[batch]
        return replace(
            self,
            batch_offsets=np.append(starts, self.num_rows),
            width=self.width[batch],
            bucket=self.bucket[batch],
        )

    def spec(self, batch: int, ids: Sequence[str]) -> BatchSpec:
        """One batch, with the ids of its samples."""
        entries = self.entries(batch)
        first, last = self.batch_offsets[batch : batch + 2].tolist()
        width = int(self.width[batch])
        starts, lengths = self.start[entries].tolist(), self.length[entries].tolist()
        return BatchSpec(
            sample_ids=tuple([ids[sample] for sample in self.sample[entries].tolist()]),
            bucket_id=int(self.bucket[batch]),
            max_length=width,
            token_count=(last - first) * width,
            spans=tuple(zip(starts, lengths, strict=True)),
            rows=tuple(np.diff(self.row_offsets[first : last + 1]).tolist()),
        )

    def specs(self, ids: Sequence[str], *, first: int = 0) -> Iterator[BatchSpec]:
        """The batches in order, from the given one on."""
        for batch in range(first, self.num_batches):
            yield self.spec(batch, ids)


def table_of(batches: Iterable[BatchSpec]) -> tuple[BatchTable, list[str]]:
    """The table of these batches in their order, and the ids that its samples refer to.

    Lengths are `UNKNOWN` in batches without spans: such a table is for fingerprints alone.
    """
    index: dict[str, int] = {}
    sample: list[int] = []
    spans: list[Span] = []
    row_sizes: list[int] = []
    batch_sizes: list[int] = []
    width: list[int] = []
    bucket: list[int] = []
    for batch in batches:
        sample += [index.setdefault(name, len(index)) for name in batch.sample_ids]
        spans += batch.spans or ((0, UNKNOWN),) * len(batch.sample_ids)
        row_sizes += batch.rows
        batch_sizes.append(len(batch.rows))
        width.append(batch.max_length)
        bucket.append(batch.bucket_id)
    starts_and_lengths = np.asarray(spans, np.int64).reshape(-1, 2)
    table = BatchTable(
        np.asarray(sample, np.int64),
        starts_and_lengths[:, 0],
        starts_and_lengths[:, 1],
        offsets_of(row_sizes),
        offsets_of(batch_sizes),
        np.asarray(width, np.int64),
        np.asarray(bucket, np.int64),
    )
    return table, list(index)
