"""A buffer of samples that are seen again, the more often the higher their priority."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from batching.core.arrays import IntArray
from batching.streaming.replay_files import Entries, opened_buffer, whole, write_buffer
from batching.streaming.samples import StreamSample, check_priority
from batching.streaming.sum_tree import FloatArray, SumTree
from query_mutator.base.locks import only_writer

PRIORITY_EXPONENT = 0.6
MOST_ENTRIES = 2**24
LAST_KEY = 2**62
"""Keys are 64 bits; half of them are left for the samples that come later."""


class Eviction(StrEnum):
    """Which sample makes room when the buffer is full."""

    FIFO = "fifo"
    """The oldest."""
    PRIORITY = "priority"
    """That of the lowest priority; of several, the oldest."""
    RANDOM = "random"
    """Any, each with the same probability."""


@dataclass
class ReplayCounts:
    """What a buffer has done so far."""

    added: int = 0
    evicted: int = 0
    drawn: int = 0
    updated: int = 0
    missed_updates: int = 0
    """Priorities for samples that had been evicted before they came."""


@dataclass(frozen=True)
class ReplayBatch:
    """Samples drawn from a buffer."""

    samples: tuple[StreamSample, ...]
    keys: IntArray
    """What `update_priorities` knows them by."""
    weights: FloatArray
    """Importance weights, of which the greatest is 1: what a loss is multiplied with, so that
    samples drawn more often do not count more."""


class ReplayBuffer:
    """Up to `max_size` samples; one is drawn with a weight of its priority to the power of 0.6.

    >>> buffer = ReplayBuffer(max_size=2, eviction="priority")
    >>> for reward in (3.0, 1.0, 2.0):
    ...     buffer.add(StreamSample((1,), (1,), reward=reward, priority=reward))
    >>> [sample.reward for sample in buffer]
    [3.0, 2.0]
    >>> batch = buffer.sample(4)
    >>> buffer.update_priorities(batch.keys, [0.5] * 4)
    4
    """

    def __init__(
        self,
        max_size: int = 10_000,
        eviction: str = Eviction.FIFO,
        *,
        priority_exponent: float = PRIORITY_EXPONENT,
        seed: int = 42,
    ) -> None:
        if not 1 <= max_size <= MOST_ENTRIES:
            raise ValueError(f"max_size must be between 1 and {MOST_ENTRIES}, not {max_size}")
        if not 0 <= priority_exponent <= 1:
            raise ValueError(f"priority_exponent must be from 0 to 1, not {priority_exponent}")
        self.max_size = max_size
        self.eviction = Eviction(eviction)
        self.priority_exponent = priority_exponent
        self.counts = ReplayCounts()
        self._samples: list[StreamSample] = []
        """By slot, as they came in, but for their priorities. A sample that comes in takes the
        slot of the one that makes room."""
        self._replays = np.zeros(max_size, np.int64)
        """By slot: how often it was drawn since it came in."""
        self._keys = np.zeros(max_size, np.int64)
        """By slot: how many came before, times max_size, plus the slot. Keys tell a sample from
        those that had its slot before, lead to the slot, and rise with every sample."""
        self._tree = SumTree(max_size)
        self._lowest: list[tuple[float, int]] = []
        """A heap of priorities and keys, for eviction by priority. Entries that no longer hold
        stay in it until they come up."""
        self._bits = np.random.PCG64(seed)

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[StreamSample]:
        """The samples, the oldest first."""
        samples = self._current()
        for slot in np.argsort(self._keys[: len(self)]).tolist():
            yield samples[slot]

    def add(self, sample: StreamSample) -> None:
        """Puts a sample in; where the buffer is full, another one goes."""
        self.extend((sample,))

    def extend(self, samples: Iterable[StreamSample]) -> None:
        """Puts samples in, in their order."""
        samples = list(samples)
        for sample in samples:
            if not isinstance(sample, StreamSample):
                kind = type(sample).__name__
                raise ValueError(f"a replay buffer holds StreamSamples, no {kind}; see its `of`")
        slots = [self._put(sample) for sample in samples]
        self._weigh(slots)

    def sample(self, count: int, *, beta: float = 0.4) -> ReplayBatch:
        """So many draws, of which each may give any sample; they are counted as replayed.

        `beta` says how far the importance weights make up for the priorities: 0 not, 1 wholly.
        """
        if not self._samples:
            raise ValueError("an empty buffer has nothing to draw from")
        if count < 1:
            raise ValueError(f"at least 1 sample is drawn, not {count}")
        slots, chances = self._draw(count)
        np.add.at(self._replays, slots, 1)  # one may be drawn several times
        times = self._replays[slots].tolist()
        samples = [
            self._samples[slot].with_replay(replays)
            for slot, replays in zip(slots.tolist(), times, strict=True)
        ]
        self.counts.drawn += count
        weights = (chances * len(self)) ** -beta
        return ReplayBatch(tuple(samples), self._keys[slots], weights / weights.max())

    def update_priorities(self, keys: npt.ArrayLike, priorities: Sequence[float]) -> int:
        """Gives samples that were drawn other priorities; returns how many are still here."""
        keys = np.asarray(keys, np.int64)
        if keys.shape != (len(priorities),):
            raise ValueError(f"{len(priorities)} priorities for keys of shape {keys.shape}")
        slots = keys % self.max_size
        here = (self._keys[slots] == keys) & (slots < len(self))
        changed = slots[here].tolist()
        checked = [check_priority(float(priority)) for priority in priorities]
        wanted = [priority for priority, still in zip(checked, here.tolist(), strict=True) if still]
        for slot, priority in zip(changed, wanted, strict=True):
            self._samples[slot] = self._samples[slot].with_priority(priority)
            self._note(slot)
        self._weigh(changed)
        self.counts.updated += len(changed)
        self.counts.missed_updates += len(keys) - len(changed)
        return len(changed)

    def save(self, path: str | Path) -> None:
        """Writes all of it as JSON, whole or not at all; what was saved before stays till then."""
        with only_writer(Path(path)):
            self.write(Path(path))

    def write(self, path: Path) -> None:
        """The same for who has the lock of the file."""
        head = {
            "max_size": self.max_size,
            "eviction": str(self.eviction),
            "priority_exponent": self.priority_exponent,
            "counts": asdict(self.counts),
            "generator": self._bits.state,
            "size": len(self),
        }
        numbers = (self._keys[: len(self)] // self.max_size).tolist()
        write_buffer(path, head, zip(numbers, self._current(), strict=True))

    @classmethod
    def load(cls, path: str | Path) -> ReplayBuffer:
        """What `save` wrote; it draws and evicts as the saved one would have from there on."""
        with opened_buffer(Path(path)) as (head, entries):
            eviction, exponent = head["eviction"], head["priority_exponent"]
            buffer = cls(whole(head, "max_size"), eviction, priority_exponent=exponent)
            counts = {name: whole(head["counts"], name) for name in vars(buffer.counts)}
            buffer._restore(entries, head["generator"], ReplayCounts(**counts))
            if not len(buffer) == head["size"] == counts["added"] - counts["evicted"]:
                raise ValueError(f"{len(buffer)} entries where {head['size']} are announced")
        return buffer

    def _restore(
        self, entries: Entries, generator_state: dict[str, Any], counts: ReplayCounts
    ) -> None:
        """Takes the place of a buffer of the same settings; raises ValueError for what is none."""
        if counts.added > LAST_KEY // self.max_size:
            raise ValueError(f"added is {counts.added}")
        try:
            self._bits.state = generator_state  # type: ignore[assignment]
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError("generator is not the state of PCG64") from error
        self.counts = counts
        self._samples, self._lowest = [], []
        self._replays[:] = 0
        for number, sample in entries:
            slot = len(self._samples)
            if slot == self.max_size:
                raise ValueError(f"more than {self.max_size} entries")
            if not 0 <= number < counts.added:
                raise ValueError(f"number {number} of {counts.added} samples")
            self._samples.append(sample)
            self._keys[slot] = number * self.max_size + slot
            self._note(slot)
        if len(set((self._keys[: len(self)] // self.max_size).tolist())) < len(self):
            raise ValueError("two samples have the same number")
        self._weigh(range(len(self)))

    def _current(self) -> list[StreamSample]:
        """By slot: the samples as they are, with how often they were drawn."""
        replays = self._replays[: len(self)].tolist()
        return [
            sample.with_replay(times) if times else sample
            for sample, times in zip(self._samples, replays, strict=True)
        ]

    def _put(self, sample: StreamSample) -> int:
        slot = len(self._samples)
        if slot < self.max_size:
            self._samples.append(sample)
        else:
            slot = self._slot_to_free()
            self._samples[slot] = sample
            self.counts.evicted += 1
        self._keys[slot] = self.counts.added * self.max_size + slot
        self._replays[slot] = 0
        self.counts.added += 1
        self._note(slot)
        return slot

    def _slot_to_free(self) -> int:
        if self.eviction is Eviction.FIFO:
            return self.counts.added % self.max_size
        if self.eviction is Eviction.RANDOM:
            return int(self._uniform(1)[0] * self.max_size)
        while True:
            priority, key = heapq.heappop(self._lowest)
            slot = key % self.max_size
            if self._keys[slot] == key and self._samples[slot].priority == priority:
                return slot

    def _note(self, slot: int) -> None:
        """Keeps the heap of lowest priorities up to date, and from growing without end."""
        if self.eviction is not Eviction.PRIORITY:
            return
        if len(self._lowest) > 2 * self.max_size:
            keys = self._keys[: len(self)].tolist()
            self._lowest = [
                (sample.priority, key) for sample, key in zip(self._samples, keys, strict=True)
            ]
            heapq.heapify(self._lowest)
        else:
            heapq.heappush(self._lowest, (self._samples[slot].priority, int(self._keys[slot])))

    def _weigh(self, slots: Sequence[int]) -> None:
        # Python's own power: numpy's may differ in the last bit with the length of the array, and
        # a restored buffer, whose weights are all made at once, would draw otherwise.
        weights = [self._samples[slot].priority ** self.priority_exponent for slot in slots]
        if slots:
            self._tree.set(np.asarray(slots, np.int64), np.asarray(weights))

    def _draw(self, count: int) -> tuple[IntArray, FloatArray]:
        """Slots, and with which probability each was drawn."""
        points, total = self._uniform(count), self._tree.total
        if total == 0.0:  # nothing is worth more than anything else
            return (points * len(self)).astype(np.int64), np.full(count, 1 / len(self))
        slots = self._tree.find(points * total)
        return slots, self._tree.weights[slots] / total

    def _uniform(self, count: int) -> FloatArray:
        """Numbers from 0 to below 1, from raw bits: numpy promises no more for all releases."""
        raw = self._bits.random_raw(count) >> np.uint64(11)
        return raw.astype(np.float64) * 2.0**-53
