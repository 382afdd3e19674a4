"""Integer arrays, and an order that is random but the same on every machine."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def whole(value: Any, name: str) -> int:
    """The value as an `int`, numpy's included; `ValueError` for anything but a whole number."""
    if isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from None


def as_lengths(values: npt.ArrayLike) -> IntArray:
    """The lengths as an array of whole, non-negative numbers; `ValueError` for anything else."""
    lengths = np.asarray(values)
    if lengths.size == 0:
        return np.zeros(0, np.int64)
    if lengths.ndim != 1 or not np.issubdtype(lengths.dtype, np.integer):
        raise ValueError("lengths must be a flat sequence of whole numbers")
    lengths = lengths.astype(np.int64, copy=False)
    if lengths.min() < 0:
        raise ValueError("a length cannot be negative")
    return lengths


def offsets_of(sizes: npt.ArrayLike) -> IntArray:
    """Where groups of these sizes begin when they stand in a row, and where the last one ends.

    >>> offsets_of([2, 1, 3]).tolist()
    [0, 2, 3, 6]
    """
    sizes = np.asarray(sizes, np.int64)
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def ranges(starts: npt.ArrayLike, sizes: npt.ArrayLike) -> IntArray:
    """The numbers from each start on, as many as its size says, one range after the other.

    >>> ranges([5, 0], [2, 3]).tolist()
    [5, 6, 0, 1, 2]
    """
    starts, sizes = np.asarray(starts, np.int64), np.asarray(sizes, np.int64)
    if (sizes == 1).all():
        return starts
    offsets = offsets_of(sizes)
    return np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def stable_order(keys: npt.NDArray[np.integer]) -> IntArray:
    """The indices in ascending order of non-negative keys; equal ones keep their order.

    >>> stable_order(np.array([3, 1, 3, 0])).tolist()
    [3, 1, 0, 2]
    """
    key_bits, index_bits = int(keys.max(initial=0)).bit_length(), (len(keys) - 1).bit_length()
    if key_bits <= 16:  # sorted by radix, in linear time
        return np.argsort(keys.astype(np.uint16), kind="stable")
    if key_bits + index_bits > 63:
        return np.argsort(keys, kind="stable")
    # With its index below each key no two are equal: the fastest sort, which is not stable, will
    # do, and what it sorts holds the order already.
    numbered = (keys.astype(np.int64) << index_bits) | np.arange(len(keys))
    numbered.sort()
    return numbered & ((1 << index_bits) - 1)


class Shuffler:
    """Random orders from a seed, the same on every machine and with every release of numpy.

    Only the raw bits of PCG64 are used, which numpy promises; `Generator.permutation` may change.
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def order(self, count: int) -> IntArray:
        """A random order of the numbers below `count`."""
        bits = max(0, count - 1).bit_length()
        return stable_order(self._bits.random_raw(count) >> np.uint64(1 + bits))
