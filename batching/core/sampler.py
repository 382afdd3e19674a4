"""Batches of samples, by their lengths, for one epoch after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import overload

import numpy as np
import numpy.typing as npt

from batching.core.arrays import IntArray, Shuffler, as_lengths, whole
from batching.core.buckets import BucketSpec
from batching.core.forming import Forming, PadPolicy, form_batches
from batching.core.overflow import OverflowCounts, OverflowPolicy, fit_lengths
from batching.core.table import BatchSpec, BatchTable

Lengths = Mapping[str, int] | tuple[Sequence[str], npt.ArrayLike] | npt.NDArray[np.integer]
"""The length of every sample: by id; as ids and lengths; or an array, with indices as ids."""


class IndexIds(Sequence[str]):
    """The ids of samples that have none: "0", "1", "2" and so on, made when asked for."""

    def __init__(self, count: int) -> None:
        self._indices = range(count)

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        chosen = self._indices[index]
        return str(chosen) if isinstance(chosen, int) else list(map(str, chosen))

    def __iter__(self) -> Iterator[str]:
        return map(str, self._indices)


def ids_and_lengths(lengths: Lengths) -> tuple[Sequence[str], IntArray]:
    """The ids of the samples, each once, and their lengths in the same order: copies of both."""
    if isinstance(lengths, Mapping):
        return _texts(lengths), as_lengths(list(lengths.values()))
    if isinstance(lengths, np.ndarray):
        return IndexIds(len(lengths)), as_lengths(lengths).copy()
    ids, values = lengths
    ids, array = _texts(ids), as_lengths(values).copy()
    if len(ids) != len(array):
        raise ValueError(f"{len(ids)} ids for {len(array)} lengths")
    if len(set(ids)) != len(ids):
        raise ValueError("two samples have the same id")
    return ids, array


def _texts(ids: Iterable[str]) -> list[str]:
    listed = list(ids)
    for name in listed:
        if not isinstance(name, str):
            raise ValueError(f"ids must be texts, not {name!r}")
    return listed


class TokenBudgetBatchSampler:
    """Batches of like lengths, none of more than `token_budget` tokens, padding included.

    The order follows from the seed and the epoch alone. Every sample comes once in an epoch, or
    is counted as left out in `counts`.

    >>> sampler = TokenBudgetBatchSampler({"a": 3, "b": 4, "c": 60}, BucketSpec((8,), 64), 64)
    >>> sorted(batch.sample_ids for batch in sampler.batches(epoch=0))
    [('b', 'a'), ('c',)]
    """

    def __init__(
        self,
        lengths: Lengths,
        bucket_spec: BucketSpec,
        token_budget: int,
        seed: int = 42,
        drop_last: bool = False,
        on_overflow: OverflowPolicy | str = OverflowPolicy.ERROR,
        pad_policy: PadPolicy | str = PadPolicy.PAD_TO_MAX,
    ) -> None:
        seed = whole(seed, "seed")
        if seed < 0:
            raise ValueError(f"seed must not be negative, not {seed}")
        self.ids, self.lengths = ids_and_lengths(lengths)
        self.forming = Forming(bucket_spec, token_budget, PadPolicy(pad_policy), drop_last)
        self.seed = seed
        self._spans, self._fitted = fit_lengths(
            self.lengths,
            self.ids,
            limit=self.forming.longest_row,
            min_length=bucket_spec.min_length,
            policy=OverflowPolicy(on_overflow),
        )
        self.counts: OverflowCounts = self._fitted
        """What was skipped, truncated or split; after `table`, what that epoch dropped as well."""

    def table(self, epoch: int = 0) -> BatchTable:
        """All batches of an epoch, as arrays."""
        rows = np.arange(len(self._spans.sample) + 1)
        shuffler = Shuffler(self.seed + epoch)
        table, left_out = form_batches(self._spans, rows, self.forming, shuffler)
        lost = int(self._spans.length[left_out].sum())
        self.counts = replace(
            self._fitted, dropped=len(left_out), lost_tokens=self._fitted.lost_tokens + lost
        )
        return table

    def batches(self, epoch: int = 0) -> Iterator[BatchSpec]:
        """The batches of an epoch, one after the other."""
        return self.table(epoch).specs(self.ids)

    async def iter_epoch(self, epoch: int = 0) -> AsyncIterator[BatchSpec]:
        """The batches of an epoch, for `async for`."""
        for batch in self.batches(epoch):
            yield batch
