"""How long samples are: percentiles, and a histogram as text, JSON and picture."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from batching.analyze.text import BAR_WIDTH, bar, percent
from batching.core.arrays import as_lengths
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import counted

PERCENTILES = (5, 25, 50, 75, 90, 95, 99)
LAST_BIN_FROM = 99
"""The percentile that bins of equal width go to; one bin holds the few longer lengths."""
NICE = (1, 2, 4, 5, 8, 10)


@dataclass(frozen=True)
class LengthHistogram:
    """The lengths of a data set in a few numbers."""

    num_samples: int
    num_tokens: int
    minimum: int
    maximum: int
    mean: float
    deviation: float
    percentiles: dict[str, int]
    """`p90`: 90 % of the samples are no longer than this."""
    edges: tuple[int, ...]
    """Bin k holds the lengths above `edges[k]` and up to `edges[k + 1]`."""
    counts: tuple[int, ...]

    @classmethod
    def of(cls, lengths: npt.ArrayLike, num_bins: int = 20) -> LengthHistogram:
        """The histogram of some lengths, in at most so many bins; `UserError` for no lengths."""
        if num_bins < 2:
            raise ValueError("a histogram needs at least two bins")
        lengths = as_lengths(lengths)
        if not len(lengths):
            raise UserError("there are no lengths; build a length cache of some samples first")
        shares = np.percentile(lengths, PERCENTILES, method="inverted_cdf")
        edges = _edges(lengths, num_bins)
        bins = np.searchsorted(edges[1:], lengths, side="left")
        return cls(
            num_samples=len(lengths),
            num_tokens=int(lengths.sum()),
            minimum=int(lengths.min()),
            maximum=int(lengths.max()),
            mean=float(lengths.mean()),
            deviation=float(lengths.std()),
            percentiles={
                f"p{percentile}": int(length)
                for percentile, length in zip(PERCENTILES, shares, strict=True)
            },
            edges=tuple(edges),
            counts=tuple(np.bincount(bins, minlength=len(edges) - 1).tolist()),
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)

    def to_text(self, bar_width: int = BAR_WIDTH) -> str:
        """Numbers and bars for a terminal."""
        lines = [
            f"{counted(self.num_samples, 'sample')}, {counted(self.num_tokens, 'token')}",
            f"lengths from {self.minimum:,} to {self.maximum:,} tokens, "
            f"mean {self.mean:,.1f}, standard deviation {self.deviation:,.1f}",
            "   ".join(f"{name} {length:,}" for name, length in self.percentiles.items()),
            "",
        ]
        most = max(self.counts)
        names = [f"{low + 1:,} to {high:,}" for low, high in pairwise(self.edges)]
        width, digits = max(map(len, names)), len(f"{most:,}")
        for name, count in zip(names, self.counts, strict=True):
            share = percent(count / self.num_samples)
            lines.append(
                f"{name:>{width}}  {bar(count / most, bar_width):{bar_width}} "
                f"{count:>{digits},}  {share:>6}".rstrip()
            )
        return "\n".join(lines)


def _edges(lengths: npt.NDArray[np.int64], num_bins: int) -> list[int]:
    """Edges of equal distance, a round number, up to most lengths; the last bin takes the rest."""
    low, high = int(lengths.min()), int(lengths.max())
    most = int(np.percentile(lengths, LAST_BIN_FROM, method="inverted_cdf"))
    step = _round_step(-(-(most - low + 1) // (num_bins - 1)))
    edges = list(range((low - 1) // step * step if low else -1, most, step))
    edges.append(min(edges[-1] + step, high))
    if edges[-1] < high:
        edges.append(high)
    return edges


def _round_step(least: int) -> int:
    """The smallest round number that is not below."""
    power = 1
    while power * NICE[-1] < least:
        power *= 10
    return next(power * nice for nice in NICE if power * nice >= least)
