"""A dataset in memory as a stream: shuffled for each epoch, and resumable anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from batching.core.arrays import Shuffler
from batching.core.samples import Sample
from batching.streaming.samples import StreamMetrics, StreamSample

SAMPLES_PER_TURN = 64
"""How many samples an asynchronous stream gives before other tasks have their turn."""


@dataclass(frozen=True)
class StreamPosition:
    """How far a stream has come: the sample of an epoch that is next."""

    epoch: int = 0
    index: int = 0

    def __post_init__(self) -> None:
        if self.epoch < 0 or self.index < 0:
            raise ValueError("a position cannot be negative")


@dataclass(eq=False)
class _Dataset:
    """Samples in the order of their epochs, from a position on."""

    samples: Sequence[Sample]
    _: KW_ONLY
    num_epochs: int | None = 1
    """None: there is no end."""
    shuffle: bool = True
    seed: int = 42
    start: StreamPosition | None = None
    """The `position` of a stream before."""

    def __post_init__(self) -> None:
        self.metrics = StreamMetrics()
        self._position = self.start or StreamPosition()
        if self._position.index > len(self.samples):
            raise ValueError(f"{self._position} is beyond a dataset of {len(self.samples)} samples")
        self._order: list[int] = []
        self._order_epoch = -1

    @property
    def position(self) -> StreamPosition:
        """Where to `start` a stream that goes on after the last sample given."""
        return self._position

    def _next(self) -> StreamSample | None:
        epoch, index = self._position.epoch, self._position.index
        if index == len(self.samples):
            epoch, index = epoch + 1, 0
        if not self.samples or (self.num_epochs is not None and epoch >= self.num_epochs):
            return None
        if epoch != self._order_epoch:
            self._order, self._order_epoch = self._order_of(epoch), epoch
        self._position = StreamPosition(epoch, index + 1)
        return self.metrics.record(StreamSample.of(self.samples[self._order[index]]))

    def _order_of(self, epoch: int) -> list[int]:
        count = len(self.samples)
        order: list[int] = Shuffler(self.seed + epoch).order(count).tolist()
        return order if self.shuffle else list(range(count))


class OfflineDatasetStream(_Dataset):
    """Samples of a dataset; a second loop over it goes on where the first one ended.

    >>> samples = [Sample((number,), (1,)) for number in range(4)]
    >>> stream = OfflineDatasetStream(samples, shuffle=False, start=StreamPosition(0, 2))
    >>> [sample.input_ids for sample in stream], stream.position
    ([(2,), (3,)], StreamPosition(epoch=0, index=4))
    """

    def __iter__(self) -> Iterator[StreamSample]:
        return self

    def __next__(self) -> StreamSample:
        if (sample := self._next()) is None:
            raise StopIteration
        return sample


class AsyncOfflineDatasetStream(_Dataset):
    """The same samples in the same order for `async for`; other tasks have their turns."""

    def __aiter__(self) -> AsyncIterator[StreamSample]:
        return self

    async def __anext__(self) -> StreamSample:
        if self.metrics.samples % SAMPLES_PER_TURN == 0:
            await asyncio.sleep(0)
        if (sample := self._next()) is None:
            raise StopAsyncIteration
        return sample
