"""The settings that a plan follows from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from batching.core import BucketSpec, Forming, OverflowPolicy, PadPolicy
from batching.core.arrays import whole
from batching.core.buckets import DEFAULT_EDGES, DEFAULT_OVERFLOW_MAX
from batching.planning.bins import PackingMode

DEFAULT_TOKEN_BUDGET = 16_384
LONGEST_PACKED = 2**24
"""Tokens in a packed row at most: packing takes memory by the length of a row."""


@dataclass(frozen=True)
class PackingConfig:
    """Several samples in one row: how, and how long a row may get."""

    mode: PackingMode = PackingMode.BEST_FIT
    max_length: int = 2048

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", PackingMode(self.mode))
        object.__setattr__(self, "max_length", whole(self.max_length, "max_length"))
        if not 1 <= self.max_length <= LONGEST_PACKED:
            raise ValueError(f"max_length must be 1 to {LONGEST_PACKED}, not {self.max_length}")


@dataclass(frozen=True)
class BatchingConfig:
    """Everything besides the lengths that decides which batches a plan has, and their order.

    >>> BatchingConfig.predictable(token_budget=4096).pad_policy
    <PadPolicy.PAD_TO_BUCKET: 'pad_to_bucket'>
    """

    token_budget: int = DEFAULT_TOKEN_BUDGET
    bucket_edges: tuple[int, ...] = DEFAULT_EDGES
    overflow_max: int = DEFAULT_OVERFLOW_MAX
    min_length: int = 1
    seed: int = 42
    shuffle: bool = True
    """Whether each epoch has an order of its own; otherwise all follow the order of the samples."""
    drop_last: bool = False
    """Whether the last batch of each bucket is left out when it is not full."""
    on_overflow: OverflowPolicy = OverflowPolicy.ERROR
    pad_policy: PadPolicy = PadPolicy.PAD_TO_MAX
    packing: PackingConfig | None = None

    def __post_init__(self) -> None:
        edges = tuple(whole(edge, "bucket_edges") for edge in self.bucket_edges)
        object.__setattr__(self, "bucket_edges", edges)
        for name in ("token_budget", "overflow_max", "min_length", "seed"):
            object.__setattr__(self, name, whole(getattr(self, name), name))
        object.__setattr__(self, "on_overflow", OverflowPolicy(self.on_overflow))
        object.__setattr__(self, "pad_policy", PadPolicy(self.pad_policy))
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, not {self.seed}")
        longest = self.forming.longest_row
        if self.packing and self.packing.max_length > longest:
            raise ValueError(
                f"packed rows of {self.packing.max_length} tokens are over {longest}, the least "
                "of token_budget and overflow_max"
            )

    @classmethod
    def predictable(
        cls,
        token_budget: int = DEFAULT_TOKEN_BUDGET,
        bucket_edges: Sequence[int] = DEFAULT_EDGES,
        overflow_max: int = DEFAULT_OVERFLOW_MAX,
        seed: int = 42,
        **others: Any,
    ) -> BatchingConfig:
        """One shape per bucket and the same order in every epoch: easy to compile and compare."""
        settings: dict[str, Any] = {"pad_policy": PadPolicy.PAD_TO_BUCKET, "shuffle": False}
        return cls(
            token_budget, tuple(bucket_edges), overflow_max, seed=seed, **(settings | others)
        )

    @classmethod
    def throughput(
        cls,
        token_budget: int = DEFAULT_TOKEN_BUDGET,
        bucket_edges: Sequence[int] = DEFAULT_EDGES,
        overflow_max: int = DEFAULT_OVERFLOW_MAX,
        seed: int = 42,
        **others: Any,
    ) -> BatchingConfig:
        """Packed rows in an order of its own for every epoch: hardly any padding."""
        packing = PackingConfig(max_length=min(overflow_max, token_budget))
        settings: dict[str, Any] = {"packing": packing}
        return cls(
            token_budget, tuple(bucket_edges), overflow_max, seed=seed, **(settings | others)
        )

    @property
    def bucket_spec(self) -> BucketSpec:
        """The buckets."""
        return BucketSpec(self.bucket_edges, self.overflow_max, self.min_length)

    @property
    def forming(self) -> Forming:
        """How rows become batches."""
        return Forming(self.bucket_spec, self.token_budget, self.pad_policy, self.drop_last)

    @property
    def longest_row(self) -> int:
        """The most tokens in a row: longer samples meet the overflow policy."""
        return self.packing.max_length if self.packing else self.forming.longest_row

    def to_dict(self) -> dict[str, Any]:
        """Every setting, for JSON."""
        return asdict(self) | {"bucket_edges": list(self.bucket_edges)}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> BatchingConfig:
        """The settings that `to_dict` gave; `ValueError` where one is missing, unknown or wrong."""
        names = {field.name for field in fields(cls)}
        if set(settings) != names:
            raise ValueError(f"settings differ from those known: {sorted(set(settings) ^ names)}")
        packing = settings["packing"]
        try:
            made = cls(**{**settings, "packing": PackingConfig(**packing) if packing else None})
        except TypeError as error:
            raise ValueError(f"a setting is of the wrong kind: {error}") from error
        if made.to_dict() != dict(settings):
            raise ValueError("a setting is of the wrong kind")
        return made
