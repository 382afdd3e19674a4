"""What a replay buffer shows of itself to be saved, and takes to be restored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from batching.streaming.samples import StreamSample


@dataclass
class ReplayCounts:
    """What a buffer has done so far."""

    added: int = 0
    evicted: int = 0
    drawn: int = 0
    updated: int = 0
    missed_updates: int = 0
    """Priorities for samples that had been evicted before they came."""


class Storable(Protocol):
    """A replay buffer, as its files see it."""

    max_size: int
    eviction: Any
    priority_exponent: float
    counts: ReplayCounts

    def __init__(self, max_size: int, eviction: str, *, priority_exponent: float) -> None: ...

    def __len__(self) -> int: ...

    @property
    def generator_state(self) -> dict[str, Any]: ...

    def numbered(self) -> Iterator[tuple[int, StreamSample]]: ...

    def restore(
        self,
        numbered: Iterable[tuple[int, StreamSample]],
        generator_state: dict[str, Any],
        counts: ReplayCounts,
    ) -> None: ...
