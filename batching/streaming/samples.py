"""Samples that arrive one after the other, with where they come from and how they went."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from batching.core.samples import Sample
from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import DEEPEST, MOST_BYTES

LARGEST = 1e15
"""Rewards and priorities beyond it are mistakes, and their sums would lose the others."""
LARGEST_TOKEN = 2**31 - 1
MOST_VALUES = 16_000_000
"""In the line of a sample: a sample of millions of tokens can be read, in half a gigabyte."""


@dataclass(frozen=True)
class StreamSample(Sample):
    """A sample with its origin and outcome; it never changes, `with_replay` gives a copy.

    >>> sample = StreamSample((5, 6), (0, 1), source="gym", reward=1.0, success=True)
    >>> sample.with_replay().replay_count, sample.replay_count
    (1, 0)
    """

    # Equal samples have equal hashes without it too, and it could not be hashed.
    meta: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """A copy of what was given: only what JSON has."""
    source: str = "offline"
    episode_id: str = ""
    step_index: int = 0
    reward: float | None = None
    difficulty: float | None = None
    """Between 0, easy, and 1; None where nobody knows."""
    success: bool | None = None
    replay_count: int = 0
    priority: float = 1.0
    """How much it is worth to see it again; 0: not at all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # Numbers of numpy and torch become plain ones: a buffer must be able to write them.
        for name in TOKENS:
            tokens = getattr(self, name)
            if tokens is not None and not set(map(type, tokens)) <= {int}:
                object.__setattr__(self, name, tuple(map(int, tokens)))
        for name in ("reward", "difficulty", "priority"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(getattr(self, name)))
        if self.step_index < 0 or self.replay_count < 0:
            raise ValueError("step_index and replay_count may not be negative")
        # Written so that a NaN is refused too.
        if self.reward is not None and not abs(self.reward) <= LARGEST:
            raise ValueError(f"reward must be a number up to {LARGEST:g}, not {self.reward}")
        if self.difficulty is not None and not 0 <= self.difficulty <= 1:
            raise ValueError(f"difficulty must be between 0 and 1, not {self.difficulty}")
        check_priority(self.priority)
        if not _is_json(dict(self.meta)):
            raise ValueError("meta may hold only what JSON has: texts, numbers, lists, objects")
        object.__setattr__(self, "meta", _copied(dict(self.meta)))

    @classmethod
    def of(cls, sample: Sample, **more: Any) -> StreamSample:
        """The sample with what a stream knows of it; a `StreamSample` without more stays itself."""
        if isinstance(sample, StreamSample) and not more:
            return sample
        own = {item.name: getattr(sample, item.name) for item in fields(sample)}
        return cls(**{**own, **more})

    def with_replay(self, times: int = 1) -> Self:
        """A copy that has been replayed once more, or so many times."""
        return self._changed(replay_count=self.replay_count + times)

    def with_priority(self, priority: float) -> Self:
        """A copy with another priority."""
        return self._changed(priority=check_priority(float(priority)))

    def _changed(self, **values: Any) -> Self:
        # The tokens were checked when this sample was made: a copy need not read them all again.
        copied = object.__new__(type(self))
        own = vars(self).copy()
        own.update(values)
        object.__setattr__(copied, "__dict__", own)
        return copied

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        values: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**values, "meta": dict(self.meta)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> StreamSample:
        """What `to_dict` gave; raises ValueError for anything else."""
        unknown = set(values) - set(KINDS)
        if unknown:
            raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
        for name in REQUIRED:
            if name not in values:
                raise ValueError(f"no {name}")
        for name, value in values.items():
            if type(value) not in KINDS[name]:
                raise ValueError(f"{name} is {type(value).__name__}")
        for name in TOKENS:
            if values.get(name) is not None and not _are_tokens(values[name]):
                raise ValueError(f"{name} must hold whole numbers from 0 to {LARGEST_TOKEN}")
        try:
            return cls(**values)
        except OverflowError as error:
            raise ValueError("a number is out of range") from error


_NONE = type(None)
KINDS: dict[str, tuple[type, ...]] = {
    "input_ids": (list, tuple),
    "loss_mask": (list, tuple),
    "segment_ids": (list, tuple, _NONE),
    "meta": (dict,),
    "source": (str,),
    "episode_id": (str,),
    "step_index": (int,),
    "reward": (int, float, _NONE),
    "difficulty": (int, float, _NONE),
    "success": (bool, _NONE),
    "replay_count": (int,),
    "priority": (int, float),
}
"""The types that each field has in JSON."""
REQUIRED = ("input_ids", "loss_mask")
TOKENS = ("input_ids", "loss_mask", "segment_ids")


def _are_tokens(values: list[Any] | tuple[Any, ...]) -> bool:
    if not values:
        return True
    # Types first: others might not compare with numbers.
    return set(map(type, values)) == {int} and 0 <= min(values) <= max(values) <= LARGEST_TOKEN


def _is_json(value: Any, levels: int = DEEPEST) -> bool:
    """Whether JSON gives back exactly this value, and no reader of it has to go too deep."""
    kind = type(value)
    if kind is dict:
        return levels > 0 and all(
            type(key) is str and _is_json(item, levels - 1) for key, item in value.items()
        )
    if kind is list:
        return levels > 0 and all(_is_json(item, levels - 1) for item in value)
    return kind in (str, int, bool, _NONE) or (kind is float and math.isfinite(value))


def _copied(value: Any) -> Any:
    """Lists and objects of their own, so that whoever changes the first does not change these."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return list(map(_copied, value)) if isinstance(value, list) else value


def check_readable(line: bytes, sample: StreamSample) -> bytes:
    """The line of a file that holds a sample; `UserError` where it could not be read again."""
    values = sum(line.count(mark) for mark in (b",", b"[", b"{"))  # as `parse_json` counts them
    if len(line) > MOST_BYTES or values > MOST_VALUES:
        raise UserError(
            f"sample {sample.sample_id!r} of {len(sample):,} tokens is too large for a file"
            "\nSplit it, or leave it out."
        )
    return line


def check_priority(priority: float) -> float:
    """The priority, if it is one; raises ValueError."""
    if not 0 <= priority <= LARGEST:  # nor is NaN
        raise ValueError(f"priority must be between 0 and {LARGEST:g}, not {priority}")
    return priority


@dataclass
class StreamMetrics:
    """What a stream has given so far, and what it left out, by reason."""

    samples: int = 0
    tokens: int = 0
    loss_tokens: int = 0
    replayed: int = 0
    """Samples that had been given before."""
    rewarded: int = 0
    reward_sum: float = 0.0
    judged: int = 0
    """Samples that tell whether they were a success."""
    successes: int = 0
    rated: int = 0
    """Samples that tell their difficulty."""
    difficulty_sum: float = 0.0
    episodes: int = 0
    """Episodes that came to their end."""
    solved_episodes: int = 0
    failed_episodes: int = 0
    """Episodes that broke off, say because a server had gone."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Samples left out, by the reason."""

    def record(self, sample: StreamSample) -> StreamSample:
        """Counts a sample that is given out, and returns it."""
        self.samples += 1
        self.tokens += len(sample)
        self.loss_tokens += sample.num_loss_tokens
        self.replayed += sample.replay_count > 0
        if sample.reward is not None:
            self.rewarded += 1
            self.reward_sum += sample.reward
        if sample.success is not None:
            self.judged += 1
            self.successes += sample.success
        if sample.difficulty is not None:
            self.rated += 1
            self.difficulty_sum += sample.difficulty
        return sample

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts samples that are left out."""
        self.dropped[reason] += count

    @property
    def mean_length(self) -> float | None:
        return _share(self.tokens, self.samples)

    @property
    def mean_reward(self) -> float | None:
        """Of the samples that have a reward; None where none has."""
        return _share(self.reward_sum, self.rewarded)

    @property
    def success_rate(self) -> float | None:
        """Of the samples that were judged; None where none was."""
        return _share(self.successes, self.judged)

    @property
    def mean_difficulty(self) -> float | None:
        return _share(self.difficulty_sum, self.rated)

    @property
    def num_dropped(self) -> int:
        return self.dropped.total()

    def to_dict(self) -> dict[str, Any]:
        """The counts and what follows from them, as JSON has it."""
        return {
            **asdict(self),
            "dropped": dict(sorted(self.dropped.items())),
            "mean_length": self.mean_length,
            "mean_reward": self.mean_reward,
            "success_rate": self.success_rate,
            "mean_difficulty": self.mean_difficulty,
        }


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
