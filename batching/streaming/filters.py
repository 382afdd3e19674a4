"""Filters and transforms between a stream and who reads it: composable, and counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from batching.streaming.protocols import AsyncSampleStream, SampleStream
from batching.streaming.samples import StreamMetrics, StreamSample


@dataclass(frozen=True)
class SampleFilter:
    """Decides which samples go on; what it refuses is counted under its name.

    >>> short_and_good = by_length(most=512) & by_success()
    >>> short_and_good.name, (~by_success()).name
    ('length ≤ 512 and success', 'not success')
    """

    name: str
    keeps: Callable[[StreamSample], bool]

    def __call__(self, sample: StreamSample) -> bool:
        return self.keeps(sample)

    def __and__(self, other: SampleFilter) -> SampleFilter:
        return SampleFilter(f"{self.name} and {other.name}", lambda s: self(s) and other(s))

    def __or__(self, other: SampleFilter) -> SampleFilter:
        return SampleFilter(f"({self.name} or {other.name})", lambda s: self(s) or other(s))

    def __invert__(self) -> SampleFilter:
        return SampleFilter(f"not {self.name}", lambda s: not self(s))


@dataclass(frozen=True)
class SampleTransform:
    """Turns a sample into another one."""

    name: str
    change: Callable[[StreamSample], StreamSample]

    def __call__(self, sample: StreamSample) -> StreamSample:
        return self.change(sample)


def by_length(least: int | None = None, most: int | None = None) -> SampleFilter:
    """Keeps samples of so many tokens."""
    return _by_range("length", len, least, most)


def by_reward(least: float | None = None, most: float | None = None) -> SampleFilter:
    """Keeps samples with such a reward; those without one are refused."""
    return _by_range("reward", lambda sample: sample.reward, least, most)


def by_difficulty(least: float | None = None, most: float | None = None) -> SampleFilter:
    """Keeps samples of such a difficulty; those of unknown difficulty are refused."""
    return _by_range("difficulty", lambda sample: sample.difficulty, least, most)


def by_success(success: bool = True) -> SampleFilter:
    """Keeps the successes, or the others; samples that nobody judged are refused."""
    name = "success" if success else "no success"
    return SampleFilter(name, lambda sample: sample.success is success)


def by_source(*sources: str) -> SampleFilter:
    """Keeps samples from these sources."""
    return SampleFilter(f"source {' or '.join(sources)}", lambda sample: sample.source in sources)


def _by_range(
    name: str,
    value_of: Callable[[StreamSample], float | None],
    least: float | None,
    most: float | None,
) -> SampleFilter:
    def keeps(sample: StreamSample) -> bool:
        value = value_of(sample)
        return (
            value is not None
            and (least is None or value >= least)
            and (most is None or value <= most)
        )

    low = "" if least is None else f"{least:g} ≤ "
    high = "" if most is None else f" ≤ {most:g}"
    return SampleFilter(f"{low}{name}{high}", keeps)


class _Steps:
    """Filters and transforms in their order, with counts of what came through."""

    def __init__(self, steps: tuple[SampleFilter | SampleTransform, ...]) -> None:
        self.steps = steps
        self.metrics = StreamMetrics()

    def _through(self, sample: StreamSample) -> StreamSample | None:
        for step in self.steps:
            if isinstance(step, SampleTransform):
                sample = step(sample)
            elif not step(sample):
                self.metrics.drop(step.name)
                return None
        return self.metrics.record(sample)


class PipelineStream(_Steps):
    """What filters and transforms, in this order, make of a stream."""

    def __init__(self, stream: SampleStream, *steps: SampleFilter | SampleTransform) -> None:
        super().__init__(steps)
        self.stream = stream

    def __iter__(self) -> Iterator[StreamSample]:
        for sample in self.stream:
            if (kept := self._through(sample)) is not None:
                yield kept


class AsyncPipelineStream(_Steps):
    """The same for `async for`."""

    def __init__(self, stream: AsyncSampleStream, *steps: SampleFilter | SampleTransform) -> None:
        super().__init__(steps)
        self.stream = stream

    async def __aiter__(self) -> AsyncIterator[StreamSample]:
        async for sample in self.stream:
            if (kept := self._through(sample)) is not None:
                yield kept
