"""How well buckets suit the lengths of samples: one by one and in all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from batching.analyze.text import percent
from batching.core import BucketSpec, BucketStats
from batching.core.arrays import as_lengths
from query_mutator.base.tables import layout
from query_mutator.base.terminal import counted


@dataclass(frozen=True)
class BucketRow:
    """One bucket, with its samples padded to the greatest length in it."""

    low: int
    high: int
    """The padded length."""
    num_samples: int
    num_tokens: int
    efficiency: float
    """The share of places that hold a token; 1 for an empty bucket."""
    rows_per_batch: int | None = None
    """How many samples fit in the token budget, where one is given."""


@dataclass(frozen=True)
class BucketEfficiency:
    """What the samples cost when each is padded to the end of its bucket."""

    spec: BucketSpec
    buckets: tuple[BucketRow, ...]
    num_samples: int
    num_tokens: int
    padded_tokens: int
    attention_efficiency: float
    """The squares of the lengths over those of the padded lengths: what attention's memory holds
    for tokens."""
    too_short: int = 0
    too_long: int = 0
    """Samples that are in no bucket."""

    @classmethod
    def of(
        cls, lengths: npt.ArrayLike, spec: BucketSpec, token_budget: int | None = None
    ) -> BucketEfficiency:
        """The efficiency of buckets for some lengths."""
        lengths = as_lengths(lengths)
        stats = BucketStats.of(lengths, spec)
        rows = []
        for number, (count, tokens) in enumerate(zip(stats.counts, stats.tokens, strict=True)):
            low, high = spec.get_bucket_range(number)
            fits = None if token_budget is None else token_budget // high
            rows.append(BucketRow(low, high, count, tokens, stats.efficiency(number), fits))
        inside = lengths[(lengths >= spec.min_length) & (lengths <= spec.overflow_max)]
        squares = float(np.square(inside, dtype=np.float64).sum())
        padded_squares = sum(row.num_samples * float(row.high) ** 2 for row in rows)
        return cls(
            spec=spec,
            buckets=tuple(rows),
            num_samples=stats.num_samples,
            num_tokens=stats.num_tokens,
            padded_tokens=sum(row.num_samples * row.high for row in rows),
            attention_efficiency=squares / padded_squares if padded_squares else 1.0,
            too_short=stats.too_short,
            too_long=stats.too_long,
        )

    @property
    def efficiency(self) -> float:
        """The share of all places that hold a token."""
        return self.num_tokens / self.padded_tokens if self.padded_tokens else 1.0

    @property
    def largest_share(self) -> float:
        """The share of all samples that is in the fullest bucket."""
        most = max(bucket.num_samples for bucket in self.buckets)
        return most / self.num_samples if self.num_samples else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        shares = {"efficiency": self.efficiency, "largest_share": self.largest_share}
        return asdict(self) | shares

    def to_text(self) -> str:
        """A table for a terminal."""
        with_rows = any(bucket.rows_per_batch is not None for bucket in self.buckets)
        header = ["bucket", "samples", "share", "tokens", "padding", "efficiency"]
        header += ["rows a batch"] * with_rows
        rows = []
        for bucket in self.buckets:
            padding = bucket.num_samples * bucket.high - bucket.num_tokens
            share = bucket.num_samples / self.num_samples if self.num_samples else 0.0
            row = [f"{bucket.low:,} to {bucket.high:,}", f"{bucket.num_samples:,}", percent(share)]
            row += [f"{bucket.num_tokens:,}", f"{padding:,}"]
            row += [percent(bucket.efficiency) if bucket.num_samples else "–"]
            row += [f"{bucket.rows_per_batch or 0:,}"] * with_rows
            rows.append(row)
        last = ["all", f"{self.num_samples:,}", "", f"{self.num_tokens:,}"]
        last += [f"{self.padded_tokens - self.num_tokens:,}", percent(self.efficiency)]
        rows.append(last + [""] * with_rows)
        lines = [layout([header, *rows])]
        for count, why in (
            (self.too_long, f"longer than {self.spec.overflow_max:,} tokens"),
            (self.too_short, f"shorter than {self.spec.min_length:,}"),
        ):
            if count:
                lines.append(f"in no bucket: {counted(count, 'sample')} {why}")
        return "\n".join(lines)
