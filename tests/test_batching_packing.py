"""Packing: few rows, no token lost, and no segment that sees another."""

from __future__ import annotations

import bisect
import doctest
import importlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching import (
    OverflowPolicy,
    PackedSequence,
    PackingConfig,
    PackingMode,
    Sample,
    create_segment_attention_mask,
    pack_arrays,
    pack_sequences,
)
from batching.planning.bins import lower_bound, pack_lengths
from benchmarks.packing import lognormal_lengths
from query_mutator.base.errors import UserError

CAPACITY = 30
lengths_lists = st.lists(st.integers(1, CAPACITY), max_size=60)


@st.composite
def samples(draw: st.DrawFn, longest: int = 40) -> Sample:
    tokens = draw(st.lists(st.integers(0, 99), max_size=longest))
    mask = [token % 2 for token in tokens]
    segments = sorted(token % 3 for token in tokens) if draw(st.booleans()) else None
    return Sample(tuple(tokens), tuple(mask), tuple(segments) if segments else None)


def rows_of(lengths: list[int], mode: PackingMode) -> list[list[int]]:
    bins = pack_lengths(np.array(lengths, np.int64), CAPACITY, mode)
    return [bins.items[a:b].tolist() for a, b in pairwise(bins.offsets.tolist())]


def plain_best_fit_decreasing(lengths: list[int]) -> list[int]:
    """The room left in each bin, by the textbook."""
    rooms: list[int] = []
    for length in sorted(lengths, reverse=True):
        place = bisect.bisect_left(rooms, length)
        room = rooms.pop(place) if place < len(rooms) else CAPACITY
        bisect.insort(rooms, room - length)
    return rooms


def fewest_bins(lengths: list[int], capacity: int) -> int:
    """By trying every way: the least number of bins after each set of items."""
    best = {0: (1, 0)}  # of a set of items: bins, and what is in the last one
    for items in range(1, 1 << len(lengths)):
        options = []
        for item, length in enumerate(lengths):
            if items >> item & 1:
                bins, filled = best[items ^ (1 << item)]
                fits = filled + length <= capacity
                options.append((bins, filled + length) if fits else (bins + 1, length))
        best[items] = min(options)
    return best[(1 << len(lengths)) - 1][0] if lengths else 0


@pytest.mark.parametrize("name", ["bins", "builder", "config", "distributed", "packing"])
def test_the_examples_in_the_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"batching.planning.{name}")).failed == 0


@given(lengths_lists, st.sampled_from(PackingMode))
def test_every_item_is_in_one_bin_and_no_bin_is_over_its_capacity(
    lengths: list[int], mode: PackingMode
) -> None:
    rows = rows_of(lengths, mode)

    assert sorted(item for row in rows for item in row) == list(range(len(lengths)))
    assert all(0 < sum(lengths[item] for item in row) <= CAPACITY for row in rows)


@given(lengths_lists)
def test_best_fit_on_counts_is_the_textbook_s_best_fit_decreasing(lengths: list[int]) -> None:
    rows = rows_of(lengths, PackingMode.BEST_FIT)
    rooms = [CAPACITY - sum(lengths[item] for item in row) for row in rows]

    assert sorted(rooms) == plain_best_fit_decreasing(lengths)


@given(lengths_lists)
def test_first_fit_takes_the_first_bin_with_room(lengths: list[int]) -> None:
    expected: list[list[int]] = []
    for item, length in enumerate(lengths):
        for row in expected:
            if sum(lengths[other] for other in row) + length <= CAPACITY:
                row.append(item)
                break
        else:
            expected.append([item])

    assert rows_of(lengths, PackingMode.FIRST_FIT) == expected


@given(lengths_lists)
def test_greedy_keeps_neighbours_together(lengths: list[int]) -> None:
    rows = rows_of(lengths, PackingMode.GREEDY)

    assert [item for row in rows for item in row] == list(range(len(lengths)))
    for row, after in pairwise(rows):
        assert sum(lengths[item] for item in row) + lengths[after[0]] > CAPACITY


@given(st.lists(st.integers(1, 12), max_size=8))
def test_no_packing_goes_below_the_lower_bound(lengths: list[int]) -> None:
    array = np.array(lengths, np.int64)
    fewest = fewest_bins(lengths, 12)

    assert -(-sum(lengths) // 12) <= lower_bound(array, 12) <= fewest
    for mode in PackingMode:
        assert pack_lengths(array, 12, mode).num_bins >= fewest


def test_the_modes_differ_and_the_default_is_the_best() -> None:
    lengths = lognormal_lengths(2000)
    bins = {mode: pack_lengths(lengths, 2048, mode).num_bins for mode in PackingMode}

    assert bins[PackingMode.BEST_FIT] < bins[PackingMode.FIRST_FIT] < bins[PackingMode.GREEDY]
    assert PackingConfig().mode is PackingMode.BEST_FIT


def test_a_hundred_thousand_lengths_reach_999_in_1000_of_the_lower_bound() -> None:
    lengths = lognormal_lengths(100_000)
    bins = pack_lengths(lengths, 2048)

    assert lower_bound(lengths, 2048) / bins.num_bins >= 0.999
    assert sorted(bins.items.tolist()) == list(range(100_000))
    assert np.add.reduceat(lengths[bins.items], bins.offsets[:-1]).max() <= 2048


@pytest.mark.parametrize("lengths", [[0, 3], [31], [-1]])
def test_lengths_that_cannot_be_packed_are_refused(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="between 1 and 30"):
        pack_lengths(np.array(lengths), CAPACITY)


@given(
    st.lists(samples(), max_size=12),
    st.sampled_from(PackingMode),
    st.sampled_from([OverflowPolicy.SPLIT, OverflowPolicy.TRUNCATE, OverflowPolicy.SKIP]),
)
def test_packing_loses_no_token_that_is_not_counted(
    given_samples: list[Sample], mode: PackingMode, policy: OverflowPolicy
) -> None:
    named = [
        replace(sample, meta={"sample_id": str(index)})
        for index, sample in enumerate(given_samples)
    ]
    rows, metrics = pack_sequences(named, PackingConfig(mode, CAPACITY), policy)

    packed = 0
    for row in rows:
        assert len(row) <= CAPACITY
        place = 0
        for name, (start, length) in zip(row.sample_ids, row.spans, strict=True):
            sample, here = named[int(name)], slice(place, place + length)
            assert row.input_ids[here] == sample.input_ids[start : start + length]
            assert row.loss_mask[here] == sample.loss_mask[start : start + length]
            place += length
        assert place == len(row) == row.num_tokens
        packed += place
    spans = [(n, *span) for row in rows for n, span in zip(row.sample_ids, row.spans, strict=True)]
    assert len(set(spans)) == len(spans) == metrics.num_samples
    assert packed == metrics.num_tokens
    assert packed + metrics.counts.lost_tokens == sum(map(len, named))
    if policy is OverflowPolicy.SPLIT:
        assert metrics.counts.lost_tokens == 0
    assert (metrics.num_rows, metrics.of_lower_bound <= 1) == (len(rows), True)


@given(st.lists(samples(longest=10), min_size=1, max_size=8), st.integers(0, 5))
def test_no_segment_sees_another_and_padding_sees_none(
    given_samples: list[Sample], padding: int
) -> None:
    named = {str(index): sample for index, sample in enumerate(given_samples)}
    rows, _ = pack_sequences(
        [replace(sample, meta={"sample_id": name}) for name, sample in named.items()],
        PackingConfig(max_length=CAPACITY),
    )
    for row in rows:
        padded = row.padded(len(row) + padding, pad_token_id=7)
        origin = [
            (index, own)
            for index, (name, (_, length)) in enumerate(zip(row.sample_ids, row.spans, strict=True))
            for own in named[name].segment_ids or (0,) * length
        ] + [(-1, -1)] * padding
        mask = create_segment_attention_mask(padded.segment_ids)
        assert mask.tolist() == [
            [origin[i] == origin[j] and j <= i for j in range(len(padded))]
            for i in range(len(padded))
        ]
        for i, (segment, position) in enumerate(
            zip(padded.segment_ids, padded.position_ids, strict=True)
        ):
            first = padded.segment_ids.index(segment)
            assert position == (0 if segment == -1 else i - first)
        assert padded.segment_ids[len(row) :] == (-1,) * padding
        assert padded.loss_mask[len(row) :] == (0,) * padding
        assert padded.input_ids[len(row) :] == (7,) * padding
        assert -1 not in row.segment_ids


@given(lengths_lists, st.sampled_from(PackingMode))
def test_packed_arrays_are_the_packed_samples_side_by_side(
    lengths: list[int], mode: PackingMode
) -> None:
    config = PackingConfig(mode, CAPACITY)
    tokens = np.arange(sum(lengths), dtype=np.int32)
    ends = np.cumsum(lengths).tolist()
    given_samples = [
        Sample(range(end - length, end), (1,) * length)  # type: ignore[arg-type]
        for end, length in zip(ends, lengths, strict=True)
    ]
    rows, _ = pack_sequences(given_samples, config)
    packed = pack_arrays(tokens, [0, *map(int, ends)], config)

    for name, found in {
        "input_ids": packed.input_ids,
        "position_ids": packed.position_ids(),
        "segment_ids": packed.segment_ids(),
    }.items():
        by_row = np.split(found, packed.row_offsets[1:-1]) if rows else []
        assert [tuple(row.tolist()) for row in by_row] == [getattr(row, name) for row in rows]
        assert found.dtype == np.int32


def test_the_segments_of_a_sample_stay_apart() -> None:
    sample = Sample((1, 2, 3, 4, 5), (1,) * 5, (2, 2, 5, 5, 5))
    rows, _ = pack_sequences([sample, Sample((6, 7), (1, 1))], PackingConfig(max_length=8))

    assert rows == [
        PackedSequence(
            input_ids=(6, 7, 1, 2, 3, 4, 5),
            loss_mask=(1,) * 7,
            segment_ids=(0, 0, 1, 1, 2, 2, 2),
            position_ids=(0, 1, 0, 1, 0, 1, 2),
            sample_ids=("", ""),
            spans=((0, 2), (0, 5)),
        )
    ]
    assert rows[0].num_segments == 3


def test_a_sample_longer_than_a_row_is_refused_unless_told_what_to_do() -> None:
    with pytest.raises(UserError, match="sample '0' has 9 tokens; 8 is the most"):
        pack_sequences([Sample((1,) * 9, (1,) * 9)], PackingConfig(max_length=8))


def test_a_row_cannot_be_padded_to_less_than_it_holds() -> None:
    rows, _ = pack_sequences([Sample((1, 2), (1, 1))])

    with pytest.raises(ValueError, match="longer than 1"):
        rows[0].padded(1)


@given(st.lists(st.integers(1, 5000), max_size=40))
def test_long_rows_are_packed_as_short_ones_are(lengths: list[int]) -> None:
    # Scaled by the same factor, everything fits as it did.
    scale = 200
    small = pack_lengths(np.array(lengths, np.int64), 5000)
    large = pack_lengths(np.array(lengths, np.int64) * scale, 5000 * scale)

    assert np.diff(small.offsets).sum() == np.diff(large.offsets).sum() == len(lengths)
    assert small.num_bins == large.num_bins


def test_rows_have_a_greatest_length() -> None:
    with pytest.raises(ValueError, match="max_length must be 1 to"):
        PackingConfig(max_length=2**40)
