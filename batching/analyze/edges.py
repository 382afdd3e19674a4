"""Bucket edges that are the best there are for a goal, by dynamic programming.

The best edges are among the distinct lengths. Let bucket (i, j) hold the distinct lengths from
number i up to j, all padded to the longest of them. Each goal's cost c(i, j) of a bucket fulfils
the quadrangle inequality c(a, c) + c(b, d) <= c(a, d) + c(b, c) for a <= b <= c <= d: the further
the end, the more a bucket pays for each sample that it holds. So the best beginning of the last
bucket never moves back when its end moves on, and divide and conquer over the ends finds them all
in n log n steps for each further edge, without missing any.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from batching.core import BucketSpec, IntArray
from batching.core.arrays import as_lengths, offsets_of, ranges
from query_mutator.base.errors import UserError

FloatArray = npt.NDArray[np.float64]
Cost = Callable[[IntArray, IntArray], FloatArray]
"""The cost of buckets, by the numbers of their first distinct length and of the one after the
last. Doubles are exact up to 2^53, which no number of padded tokens comes near; the squares that
the goal `memory` sums may go beyond, and are then right to 16 digits."""

DEFAULT_NUM_EDGES = 4


class Goal(StrEnum):
    """What the edges are to be best for; longer names are understood.

    >>> Goal("minimize_waste"), Goal("balance_buckets")
    (<Goal.WASTE: 'waste'>, <Goal.BALANCE: 'balance'>)
    """

    WASTE = "waste"
    """The fewest padded tokens."""
    BALANCE = "balance"
    """Buckets of the most equal numbers of samples: the least sum of their squares."""
    MEMORY = "memory"
    """The least memory for attention, which grows with the square of the padded length: the least
    sum of these squares. (The peak cannot be lowered: the longest sample sets it.)"""

    @classmethod
    def _missing_(cls, value: object) -> Goal | None:
        names = [f"minimize_{cls.WASTE}", f"{cls.BALANCE}_buckets", f"minimize_{cls.MEMORY}"]
        return list(cls)[names.index(value)] if isinstance(value, str) and value in names else None


def suggest_edges(
    lengths: npt.ArrayLike,
    num_edges: int = DEFAULT_NUM_EDGES,
    goal: Goal | str = Goal.WASTE,
    *,
    overflow_max: int | None = None,
    multiple_of: int = 1,
) -> BucketSpec:
    """The best buckets with at most so many edges; no other edges do better for the goal.

    The last bucket ends at `overflow_max`, which is the greatest length where none is given;
    lengths beyond it are left out. Edges are multiples of `multiple_of`, if there is one.

    >>> suggest_edges([3, 4, 4, 5, 50, 52], 1).edges
    (5,)
    """
    if num_edges < 1 or multiple_of < 1:
        raise ValueError("num_edges and multiple_of must be at least 1")
    lengths = as_lengths(lengths)
    lengths = lengths[lengths >= 1]
    if overflow_max is not None:
        lengths = lengths[lengths <= overflow_max]
    if not len(lengths):
        reach = f" of at most {overflow_max} tokens" if overflow_max is not None else ""
        raise UserError(f"there are no samples{reach} to suggest edges for")
    padded = -(-lengths // multiple_of) * multiple_of
    last = overflow_max if overflow_max is not None else int(padded.max())
    ends, counts = np.unique(np.minimum(padded, last), return_counts=True)
    if ends[-1] < last:
        ends, counts = np.append(ends, last), np.append(counts, 0)
    cost = _cost(Goal(goal), ends, counts)
    best = _best_cuts(len(ends), min(num_edges + 1, len(ends)), cost)
    return BucketSpec(tuple(ends[cut - 1] for cut in best), last)


def _cost(goal: Goal, ends: IntArray, counts: IntArray) -> Cost:
    before = offsets_of(counts).astype(np.float64)  # the samples before each distinct length
    if goal is Goal.BALANCE:
        return lambda first, after: (before[after] - before[first]) ** 2
    weight = ends.astype(np.float64) ** (2 if goal is Goal.MEMORY else 1)
    return lambda first, after: weight[after - 1] * (before[after] - before[first])


def _best_cuts(size: int, num_buckets: int, cost: Cost) -> list[int]:
    """Where to cut the numbers below `size` into so many ranges of the least cost in all."""
    costs = cost(np.zeros(size + 1, np.int64), np.arange(size + 1))
    beginnings = []
    for bucket in range(1, num_buckets):
        # The last bucket ends at the end; the ones before it may end anywhere.
        first_end = size if bucket == num_buckets - 1 else bucket + 1
        costs, begins = _one_more(costs, bucket, first_end, size, cost)
        beginnings.append(begins)
    cuts = [size]
    for begins in reversed(beginnings):
        cuts.append(int(begins[cuts[-1]]))
    return cuts[:0:-1]


def _one_more(
    costs: FloatArray, earliest: int, first_end: int, last_end: int, cost: Cost
) -> tuple[FloatArray, IntArray]:
    """For each end, the least cost with one more bucket, and where that bucket begins.

    `costs` are those of the buckets before it, by where they end. All ends in the middle of an
    open range are solved at once; what they find bounds the ends on either side.
    """
    least = np.full(len(costs), np.inf)
    begins = np.zeros(len(costs), np.int64)
    low, high = np.array([first_end]), np.array([last_end])
    from_, to = np.array([earliest]), np.array([last_end - 1])
    while len(low):
        end = (low + high) // 2
        sizes = np.minimum(to, end - 1) - from_ + 1
        tried = ranges(from_, sizes)
        totals = costs[tried] + cost(tried, np.repeat(end, sizes))
        starts = offsets_of(sizes)[:-1]
        least[end] = np.minimum.reduceat(totals, starts)
        hits = np.flatnonzero(totals == np.repeat(least[end], sizes))
        best = tried[hits[np.searchsorted(hits, starts)]]
        begins[end] = best
        low, high = np.concatenate((low, end + 1)), np.concatenate((end - 1, high))
        from_, to = np.concatenate((from_, best)), np.concatenate((best, to))
        is_open = low <= high
        low, high, from_, to = low[is_open], high[is_open], from_[is_open], to[is_open]
    return least, begins
