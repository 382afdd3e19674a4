"""What every stream of samples can do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Protocol, runtime_checkable

from batching.streaming.samples import StreamMetrics, StreamSample


@runtime_checkable
class SampleStream(Protocol):
    """Samples one after the other, counted as they are given."""

    @property
    def metrics(self) -> StreamMetrics:
        """What was given so far, and what was left out."""

    def __iter__(self) -> Iterator[StreamSample]:
        """The samples, from where the stream stands."""


@runtime_checkable
class AsyncSampleStream(Protocol):
    """The same for `async for`."""

    @property
    def metrics(self) -> StreamMetrics:
        """What was given so far, and what was left out."""

    def __aiter__(self) -> AsyncIterator[StreamSample]:
        """The samples, from where the stream stands."""


class TextTokenizer(Protocol):
    """Anything that turns a text into tokens."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
