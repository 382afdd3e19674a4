"""Several samples in one row, without one of them seeing another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from batching.core import IntArray, OverflowCounts, OverflowPolicy, Sample, Span, fit_lengths
from batching.core.arrays import offsets_of, ranges
from batching.planning.bins import lower_bound, pack_lengths
from batching.planning.config import PackingConfig

PADDING_SEGMENT = -1
"""The segment of padding: no sample has it."""


@dataclass(frozen=True)
class PackedSequence:
    """One row of tokens of several samples, told apart by their segment ids.

    Position ids begin at 0 in every segment, as if it stood alone.
    """

    input_ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    segment_ids: tuple[int, ...]
    position_ids: tuple[int, ...]
    sample_ids: tuple[str, ...] = ()
    """The samples in the row, in order."""
    spans: tuple[Span, ...] = ()
    """Of each of them: where its tokens begin in the sample, and how many they are."""

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def num_segments(self) -> int:
        """Segments, padding apart."""
        return len(set(self.segment_ids) - {PADDING_SEGMENT})

    @property
    def num_tokens(self) -> int:
        """Tokens, padding apart."""
        return sum(segment != PADDING_SEGMENT for segment in self.segment_ids)

    def padded(self, length: int, pad_token_id: int = 0) -> PackedSequence:
        """The row with padding up to a length: no loss, and a segment apart from all others."""
        missing = length - len(self)
        if missing < 0:
            raise ValueError(f"a row of {len(self)} tokens is longer than {length}")
        return PackedSequence(
            self.input_ids + (pad_token_id,) * missing,
            self.loss_mask + (0,) * missing,
            self.segment_ids + (PADDING_SEGMENT,) * missing,
            self.position_ids + (0,) * missing,
            self.sample_ids,
            self.spans,
        )


@dataclass(frozen=True, eq=False)
class PackedArrays:
    """Packed rows as flat arrays: row r holds `input_ids[row_offsets[r]:row_offsets[r + 1]]`."""

    input_ids: npt.NDArray[Any]
    row_offsets: IntArray
    items: IntArray
    """Which sequence each piece is, in the order of the rows."""
    lengths: IntArray
    """How many tokens each piece has."""
    item_offsets: IntArray
    """Row r holds the pieces from `item_offsets[r]` to before `item_offsets[r + 1]`."""

    @property
    def num_rows(self) -> int:
        return len(self.row_offsets) - 1

    def position_ids(self) -> npt.NDArray[np.int32]:
        """Of each token: its place in its sequence."""
        positions = np.arange(len(self.input_ids), dtype=np.int32)
        positions -= np.repeat(offsets_of(self.lengths)[:-1].astype(np.int32), self.lengths)
        return positions

    def segment_ids(self) -> npt.NDArray[np.int32]:
        """Of each token: which of the sequences in its row it belongs to, from 0 on."""
        return np.repeat(
            ranges(np.zeros(self.num_rows, np.int64), np.diff(self.item_offsets)).astype(np.int32),
            self.lengths,
        )


def pack_arrays(
    tokens: npt.NDArray[Any], offsets: npt.ArrayLike, config: PackingConfig | None = None
) -> PackedArrays:
    """Packed rows of sequences that stand one after the other in `tokens`.

    Sequence s is `tokens[offsets[s]:offsets[s + 1]]`. None may be empty or longer than a row.

    >>> packed = pack_arrays(np.array([1, 2, 3, 4, 5]), [0, 3, 5], PackingConfig(max_length=6))
    >>> packed.input_ids.tolist(), packed.position_ids().tolist(), packed.segment_ids().tolist()
    ([4, 5, 1, 2, 3], [0, 1, 0, 1, 2], [0, 0, 1, 1, 1])
    """
    config = config or PackingConfig()
    offsets = np.asarray(offsets, np.int64)
    sizes = np.diff(offsets)
    bins = pack_lengths(sizes, config.max_length, config.mode)
    lengths = sizes[bins.items]
    starts = offsets[bins.items]
    # A copy of each sequence as a whole is several times faster than a gather by token.
    pieces = map(slice, starts.tolist(), (starts + lengths).tolist())
    input_ids = np.concatenate([tokens[:0], *map(tokens.__getitem__, pieces)])
    return PackedArrays(
        input_ids, offsets_of(lengths)[bins.offsets], bins.items, lengths, bins.offsets
    )


@dataclass(frozen=True)
class PackingMetrics:
    """How full packed rows are, and how near to what is possible."""

    num_samples: int
    num_rows: int
    num_tokens: int
    max_length: int
    lower_bound: int
    """Fewer rows than this cannot hold the same pieces (Martello and Toth's L2)."""
    counts: OverflowCounts = field(default_factory=OverflowCounts)
    """What was skipped, truncated or split because it is longer than a row."""

    @property
    def efficiency(self) -> float:
        """The share of places that hold a token when all rows have `max_length`."""
        places = self.num_rows * self.max_length
        return self.num_tokens / places if places else 0.0

    @property
    def of_lower_bound(self) -> float:
        """The fewest rows thinkable over the rows there are: 1 is perfect."""
        return self.lower_bound / self.num_rows if self.num_rows else 1.0


def pack_sequences(
    samples: Sequence[Sample],
    config: PackingConfig | None = None,
    on_overflow: OverflowPolicy | str = OverflowPolicy.ERROR,
) -> tuple[list[PackedSequence], PackingMetrics]:
    """Packed rows, and what they make of the room they take.

    >>> samples = [Sample((1, 2), (1, 1)), Sample((3, 4, 5), (0, 1, 1))]
    >>> rows, metrics = pack_sequences(samples, PackingConfig(max_length=6))
    >>> rows[0].segment_ids, rows[0].position_ids
    ((0, 0, 1, 1, 1), (0, 1, 0, 1, 2))
    """
    config = config or PackingConfig()
    lengths = np.asarray([len(sample) for sample in samples], np.int64)
    ids = [sample.sample_id or str(index) for index, sample in enumerate(samples)]
    pieces, counts = fit_lengths(
        lengths, ids, limit=config.max_length, policy=OverflowPolicy(on_overflow)
    )
    bins = pack_lengths(pieces.length, config.max_length, config.mode)
    packed = pieces.take(bins.items)
    listed = list(
        zip(packed.sample.tolist(), packed.start.tolist(), packed.length.tolist(), strict=True)
    )
    rows = [
        pack_row([(samples[sample], start, length) for sample, start, length in listed[first:last]])
        for first, last in pairwise(bins.offsets.tolist())
    ]
    metrics = PackingMetrics(
        num_samples=len(listed),
        num_rows=len(rows),
        num_tokens=int(pieces.length.sum()),
        max_length=config.max_length,
        lower_bound=lower_bound(pieces.length, config.max_length),
        counts=counts,
    )
    return rows, metrics


def pack_row(pieces: Sequence[tuple[Sample, int, int]]) -> PackedSequence:
    """One row of these pieces, given as sample, start and length.

    The segments of a sample that has several stay apart from one another.
    """
    input_ids: list[int] = []
    loss_mask: list[int] = []
    segment_ids: list[int] = []
    position_ids: list[int] = []
    next_segment = 0
    for sample, start, length in pieces:
        part = slice(start, start + length)
        input_ids += sample.input_ids[part]
        loss_mask += sample.loss_mask[part]
        own = sample.segment_ids
        sizes = [len(list(same)) for _, same in groupby(own[part])] if own else [length]
        for size in sizes:
            segment_ids += [next_segment] * size
            position_ids += range(size)
            next_segment += 1
    return PackedSequence(
        tuple(input_ids),
        tuple(loss_mask),
        tuple(segment_ids),
        tuple(position_ids),
        tuple(sample.sample_id for sample, _, _ in pieces),
        tuple((start, length) for _, start, length in pieces),
    )


def create_segment_attention_mask(segment_ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """A square matrix: whether token i may look at token j.

    It may where both are in the same segment and j does not come later. Padding looks at padding
    alone: a token that may look at nothing would turn a softmax into NaN.

    >>> create_segment_attention_mask([0, 0, 1, -1]).astype(int).tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    segments = np.asarray(segment_ids)
    if segments.ndim != 1:
        raise ValueError("segment_ids must be flat: a mask is for one row")
    return np.tril(segments[:, None] == segments[None, :])
