"""Buckets: ranges of lengths whose samples are batched together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from batching.core.arrays import IntArray, as_lengths, whole

DEFAULT_EDGES = (128, 256, 512, 1024)
DEFAULT_OVERFLOW_MAX = 2048


@dataclass(frozen=True)
class BucketSpec:
    """Where one bucket ends and the next begins; the last one ends at `overflow_max`.

    >>> spec = BucketSpec(edges=(128, 256), overflow_max=1024)
    >>> spec.get_bucket_id(128), spec.get_bucket_id(129), spec.get_bucket_range(1)
    (0, 1, (129, 256))
    """

    edges: tuple[int, ...]
    overflow_max: int
    min_length: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(whole(edge, "edges") for edge in self.edges))
        for name in ("overflow_max", "min_length"):
            object.__setattr__(self, name, whole(getattr(self, name), name))
        if self.min_length < 1:
            raise ValueError(f"min_length must be at least 1, not {self.min_length}")
        limits = (self.min_length - 1, *self.edges, self.overflow_max)
        if any(after <= before for before, after in pairwise(limits)):
            raise ValueError(
                f"edges must ascend from min_length {self.min_length} to below overflow_max "
                f"{self.overflow_max}, not {list(self.edges)}"
            )

    @classmethod
    def default(cls) -> BucketSpec:
        """Edges 128, 256, 512, 1024 and at most 2048 tokens."""
        return cls(DEFAULT_EDGES, DEFAULT_OVERFLOW_MAX)

    @property
    def num_buckets(self) -> int:
        """The number of buckets, the one above the last edge included."""
        return len(self.edges) + 1

    def get_bucket_id(self, length: int) -> int:
        """The bucket of a length; what is longer than `overflow_max` counts to the last."""
        return int(np.searchsorted(self.edges, length, side="left"))

    def bucket_ids(self, lengths: npt.ArrayLike) -> IntArray:
        """The bucket of each length."""
        return np.searchsorted(np.asarray(self.edges, np.int64), lengths, side="left")

    def get_bucket_max(self, bucket_id: int) -> int:
        """The greatest length in a bucket."""
        return self.get_bucket_range(bucket_id)[1]

    def get_bucket_range(self, bucket_id: int) -> tuple[int, int]:
        """The least and the greatest length in a bucket."""
        if not 0 <= bucket_id < self.num_buckets:
            raise ValueError(f"no bucket {bucket_id}: there are {self.num_buckets}")
        lows = (self.min_length, *(edge + 1 for edge in self.edges))
        return lows[bucket_id], (*self.edges, self.overflow_max)[bucket_id]


@dataclass(frozen=True)
class BucketStats:
    """How many samples and tokens fall into each bucket, and how many into none."""

    spec: BucketSpec
    counts: tuple[int, ...]
    tokens: tuple[int, ...]
    too_short: int = 0
    too_long: int = 0

    @classmethod
    def of(cls, lengths: npt.ArrayLike, spec: BucketSpec) -> BucketStats:
        """Counts lengths; those beyond `min_length` and `overflow_max` are told apart."""
        lengths = as_lengths(lengths)
        short, long = lengths < spec.min_length, lengths > spec.overflow_max
        inside = lengths[~(short | long)]
        buckets = spec.bucket_ids(inside)
        counts = np.bincount(buckets, minlength=spec.num_buckets)
        tokens = np.zeros(spec.num_buckets, np.int64)
        np.add.at(tokens, buckets, inside)
        return cls(
            spec,
            tuple(counts.tolist()),
            tuple(tokens.tolist()),
            too_short=int(short.sum()),
            too_long=int(long.sum()),
        )

    @property
    def num_samples(self) -> int:
        """Samples in all buckets."""
        return sum(self.counts)

    @property
    def num_tokens(self) -> int:
        """Tokens in all buckets."""
        return sum(self.tokens)

    def efficiency(self, bucket_id: int) -> float:
        """The share of tokens when the samples of a bucket are padded to its greatest length."""
        places = self.counts[bucket_id] * self.spec.get_bucket_max(bucket_id)
        return self.tokens[bucket_id] / places if places else 1.0

    @property
    def overall_efficiency(self) -> float:
        """The share of tokens when every sample is padded to its bucket's greatest length."""
        places = sum(
            count * self.spec.get_bucket_max(bucket) for bucket, count in enumerate(self.counts)
        )
        return self.num_tokens / places if places else 1.0
