"""A stream cut into windows, each planned like an epoch: batches for what has no end."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from batching.core import BatchMetrics, BatchSpec, BatchTable, OverflowCounts, OverflowPolicy
from batching.core.overflow import fit_lengths
from batching.planning import BatchingConfig, BatchPlanBuilder, EpochPlan
from batching.planning.fingerprint import settings_digest
from batching.streaming.samples import StreamSample


@dataclass(frozen=True)
class WindowConfig:
    """How many samples are planned together, and how."""

    window_size: int = 1024
    """More waste less, and come later."""
    batching: BatchingConfig = field(default_factory=BatchingConfig)

    def __post_init__(self) -> None:
        if self.window_size < 1:
            raise ValueError(f"window_size must be at least 1, not {self.window_size}")


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """The batches of one window; every sample is in them once, or counted in `counts`."""

    index: int
    samples: tuple[StreamSample, ...]
    """In the order in which they came."""
    plan: EpochPlan
    config: WindowConfig

    def __len__(self) -> int:
        return len(self.plan)

    def __iter__(self) -> Iterator[BatchSpec]:
        return iter(self.plan)

    @property
    def table(self) -> BatchTable:
        return self.plan.table

    @property
    def counts(self) -> OverflowCounts:
        """What was skipped, truncated, split or dropped."""
        return self.plan.counts

    @property
    def metrics(self) -> BatchMetrics:
        """How well the batches use their tokens."""
        return self.plan.metrics

    def samples_of(self, batch: int) -> list[StreamSample]:
        """The samples of a batch, one for each of its `sample_ids`."""
        entries = self.table.sample[self.table.entries(batch)]
        return [self.samples[sample] for sample in entries.tolist()]

    @property
    def samples_by_id(self) -> dict[str, StreamSample]:
        """The samples by the ids that the batches have; of equal ids the second is `id#2`."""
        return dict(zip(self.plan.ids, self.samples, strict=True))

    @cached_property
    def fingerprint(self) -> str:
        """Changes with any setting, any batch, their order, the samples and the window's number."""
        return settings_digest(
            {
                "window_size": self.config.window_size,
                "batching": self.config.batching.to_dict(),
                "ids": list(self.plan.ids),
                "lengths": [len(sample) for sample in self.samples],
                **self.plan.summary(),
            }
        )


class RollingBatchPlanWindow:
    """Plans samples as they come, a window at a time; the same samples give the same batches.

    >>> window = RollingBatchPlanWindow(WindowConfig(window_size=2))
    >>> samples = [StreamSample((1,) * length, (1,) * length) for length in (3, 5, 4)]
    >>> [(plan.index, plan.counts.skipped, len(plan.samples)) for plan in window.plans(samples)]
    [(0, 0, 2), (1, 0, 1)]
    """

    def __init__(self, config: WindowConfig | None = None, *, first_window: int = 0) -> None:
        """`first_window` is the number to go on with, where windows were planned before."""
        if first_window < 0:
            raise ValueError(f"first_window cannot be {first_window}")
        self.config = config or WindowConfig()
        self.metrics = BatchMetrics()
        """Of all windows so far."""
        self._longest = self.config.batching.longest_row
        self._policy = self.config.batching.on_overflow
        self._next = first_window
        self._waiting: list[StreamSample] = []

    @property
    def next_window(self) -> int:
        """The number of the window that is being filled."""
        return self._next

    @property
    def waiting(self) -> int:
        """How many samples have come that are in no plan yet."""
        return len(self._waiting)

    def add(self, sample: StreamSample) -> WindowPlan | None:
        """Takes a sample; where it fills the window, gives the plan of the window.

        One that no plan can hold is refused here: in the window it would refuse all others.
        """
        if len(sample) > self._longest and self._policy is OverflowPolicy.ERROR:
            name = _name(sample, self._next, self.waiting)
            fit_lengths(np.array([len(sample)]), [name], limit=self._longest)
        self._waiting.append(sample)
        return self.flush() if len(self._waiting) >= self.config.window_size else None

    def flush(self) -> WindowPlan | None:
        """The plan of what has come since the last one; None where nothing has."""
        if not self._waiting:
            return None
        index, samples = self._next, tuple(self._waiting)
        plan = WindowPlan(index, samples, self._planned(index, samples), self.config)
        self._next, self._waiting = index + 1, []
        self.metrics += plan.metrics
        return plan

    def plans(self, stream: Iterable[StreamSample]) -> Iterator[WindowPlan]:
        """The windows of a stream; the last one may be smaller."""
        for sample in stream:
            if (plan := self.add(sample)) is not None:
                yield plan
        if (plan := self.flush()) is not None:
            yield plan

    async def async_plans(self, stream: AsyncIterable[StreamSample]) -> AsyncIterator[WindowPlan]:
        """The same for `async for`."""
        async for sample in stream:
            if (plan := self.add(sample)) is not None:
                yield plan
        if (plan := self.flush()) is not None:
            yield plan

    def _planned(self, index: int, samples: tuple[StreamSample, ...]) -> EpochPlan:
        ids = _unique([_name(sample, index, place) for place, sample in enumerate(samples)])
        config = replace(self.config.batching, seed=self.config.batching.seed + index)
        lengths = [len(sample) for sample in samples]
        plan = BatchPlanBuilder((ids, lengths), config).build(num_epochs=1)
        return replace(plan.epochs[0], epoch=index)


def _name(sample: StreamSample, window: int, place: int) -> str:
    return sample.sample_id or f"{window}/{place}"


def _unique(names: list[str]) -> list[str]:
    """The names, numbered where they come again, as samples of a replay buffer do.

    >>> _unique(["a", "b", "a", "a#2", "a"])
    ['a', 'b', 'a#3', 'a#2', 'a#4']
    """
    taken, numbers = set(names), Counter[str]()
    unique = []
    for name in names:
        numbers[name] += 1
        own = name
        if numbers[name] > 1:
            while (own := f"{name}#{numbers[name]}") in taken:
                numbers[name] += 1
            taken.add(own)
        unique.append(own)
    return unique
