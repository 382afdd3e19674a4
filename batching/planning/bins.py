"""Bin packing on arrays: which lengths share a row of a given capacity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from batching.core.arrays import IntArray, offsets_of, ranges, stable_order


class PackingMode(StrEnum):
    """How lengths are put into rows."""

    BEST_FIT = "best_fit"
    """The longest first, each into the fullest row that it fits: the fewest rows, and fast."""
    FIRST_FIT = "first_fit"
    """In the order given, each into the first row that it fits."""
    GREEDY = "greedy"
    """In the order given, each into the last row or else a fresh one: neighbours stay together."""


@dataclass(frozen=True)
class Bins:
    """Items in bins: bin b holds `items[offsets[b]:offsets[b + 1]]`."""

    items: IntArray
    offsets: IntArray

    @property
    def num_bins(self) -> int:
        return len(self.offsets) - 1


def pack_lengths(
    lengths: IntArray, capacity: int, mode: PackingMode = PackingMode.BEST_FIT
) -> Bins:
    """Every length in one bin, no bin over its capacity.

    >>> bins = pack_lengths(np.array([6, 5, 4, 3]), 10)
    >>> bins.items.tolist(), bins.offsets.tolist()
    ([2, 0, 3, 1], [0, 2, 4])
    """
    if len(lengths) and not 0 < lengths.min() <= lengths.max() <= capacity:
        raise ValueError(f"lengths must be between 1 and {capacity} to be packed")
    pack: dict[PackingMode, Callable[[IntArray, int], Bins]] = {
        PackingMode.BEST_FIT: best_fit_decreasing,
        PackingMode.FIRST_FIT: first_fit,
        PackingMode.GREEDY: next_fit,
    }
    return pack[mode](lengths, capacity)


def next_fit(lengths: IntArray, capacity: int) -> Bins:
    """Bins of neighbours: as many as fit, then the next bin."""
    offsets: list[int] = []
    room = 0
    for item, length in enumerate(lengths.tolist()):
        room -= length
        if room < 0 or not offsets:
            offsets.append(item)
            room = capacity - length
    return Bins(np.arange(len(lengths)), np.asarray([*offsets, len(lengths)]))


def first_fit(lengths: IntArray, capacity: int) -> Bins:
    """Each item in the first bin with room, found by a tree of the most room below each node."""
    leaves = 1 << max(0, len(lengths) - 1).bit_length()
    room = [capacity] * (2 * leaves)
    bin_of = np.zeros(len(lengths), np.int64)
    for item, length in enumerate(lengths.tolist()):
        node = 1
        while node < leaves:
            node *= 2
            if room[node] < length:
                node += 1
        bin_of[item] = node - leaves
        room[node] -= length
        while node := node // 2:
            most = max(room[2 * node], room[2 * node + 1])
            if room[node] == most:
                break
            room[node] = most
    return Bins(np.argsort(bin_of, kind="stable"), offsets_of(np.bincount(bin_of)))


Contents: TypeAlias = "tuple[int, int, Contents] | None"
"""What a bin holds: a length, how often, and below them what was in it before; None is empty."""


class _Rooms:
    """A set of whole numbers that finds its least from a given one on.

    Two levels of bits: a step costs no more than a glance at the square root of the capacity.
    """

    def __init__(self, capacity: int) -> None:
        self._shift = max(6, capacity.bit_length() // 2)
        self._mask = (1 << self._shift) - 1
        self._blocks = [0] * ((capacity >> self._shift) + 1)
        self._in_use = 0  # bit b is set where block b holds any

    def add(self, room: int) -> None:
        block = room >> self._shift
        self._blocks[block] |= 1 << (room & self._mask)
        self._in_use |= 1 << block

    def remove(self, room: int) -> None:
        block = room >> self._shift
        self._blocks[block] ^= 1 << (room & self._mask)
        if not self._blocks[block]:
            self._in_use ^= 1 << block

    def least_from(self, room: int) -> int:
        block = room >> self._shift
        bits = self._blocks[block] >> (room & self._mask) << (room & self._mask)
        if not bits:
            above = self._in_use >> block + 1 << block + 1
            block = (above & -above).bit_length() - 1
            bits = self._blocks[block]
        return (block << self._shift) + (bits & -bits).bit_length() - 1


def best_fit_decreasing(lengths: IntArray, capacity: int) -> Bins:
    """The longest item first, each in the fullest bin with room for it.

    Works on counts of equal lengths and of bins with equal contents: a million items cost little
    more than their few thousand distinct lengths.
    """
    bins_by_room: defaultdict[int, list[tuple[Contents, int]]] = defaultdict(list)
    bins_by_room[capacity].append((None, len(lengths)))  # more empty bins than can be used
    rooms = _Rooms(capacity)
    rooms.add(capacity)
    counts = np.bincount(lengths)
    for length in np.flatnonzero(counts)[::-1].tolist():
        left = int(counts[length])
        if 2 * length > capacity:  # two such never share a bin
            bins_by_room[capacity - length].append(((length, 1, None), left))
            rooms.add(capacity - length)
            continue
        while left:
            room = rooms.least_from(length)
            contents, num_bins = bins_by_room[room].pop()
            # A bin that took an item is the fullest for the next one of the same length too.
            each = min(room // length, left)
            used = min(num_bins, left // each)
            left -= used * each
            if used < num_bins:
                bins_by_room[room].append((contents, num_bins - used))
            elif not bins_by_room[room]:
                rooms.remove(room)
            room -= each * length
            bins_by_room[room].append(((length, each, contents), used))
            rooms.add(room)
    filled = [group for groups in bins_by_room.values() for group in groups if group[0]]
    return _items_in_bins(lengths, filled)


def _items_in_bins(lengths: IntArray, groups: list[tuple[Contents, int]]) -> Bins:
    """Bins with these contents, each so many times, made of the items in their order."""
    listed: list[int] = []
    sizes: list[int] = []
    for contents, _ in groups:
        before = len(listed)
        while contents:
            length, count, contents = contents
            listed += [length] * count
        sizes.append(len(listed) - before)
    repeats = [num_bins for _, num_bins in groups]
    bin_sizes = np.repeat(np.asarray(sizes, np.int64), repeats)
    places = ranges(np.repeat(offsets_of(sizes)[:-1], repeats), bin_sizes)
    place_lengths = np.asarray(listed, np.int64)[places]
    items = np.empty(len(lengths), np.int64)
    items[stable_order(place_lengths)] = stable_order(lengths)
    return Bins(items, offsets_of(bin_sizes))


def lower_bound(lengths: IntArray, capacity: int) -> int:
    """A number of bins that no packing can go below: Martello and Toth's L2.

    For a threshold k: items above `capacity - k` share their bin with none of at least k, those
    above half share it with no other such, and the rest of at least k must fit in what is left.
    """
    lengths = np.sort(lengths)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    half = int(np.searchsorted(lengths, capacity // 2, side="right"))
    thresholds = np.unique(np.append(lengths[:half], 0))
    first = np.searchsorted(lengths, thresholds, side="left")
    alone = np.searchsorted(lengths, capacity - thresholds, side="right")
    large = alone - half
    room = large * capacity - (ends[alone] - ends[half])
    rest = np.maximum(ends[half] - ends[first] - room, 0)
    return int((len(lengths) - alone + large + -(-rest // capacity)).max(initial=0))
