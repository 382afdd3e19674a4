"""What becomes of samples that are too long, or too short, to be batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from batching.core.arrays import IntArray, offsets_of
from query_mutator.base.errors import UserError


class OverflowPolicy(StrEnum):
    """What to do with a sample that is longer than a row may be."""

    ERROR = "error"
    """Refuse to batch at all."""
    TRUNCATE = "truncate"
    """Keep its first tokens."""
    SPLIT = "split"
    """Cut it into parts, each of which is batched."""
    SKIP = "skip"
    """Leave it out."""


@dataclass(frozen=True)
class OverflowCounts:
    """How many samples did not go into the batches as they are."""

    skipped: int = 0
    """Too long, under `OverflowPolicy.SKIP`."""
    too_short: int = 0
    """Shorter than the bucket spec's `min_length`, and left out for it."""
    truncated: int = 0
    split: int = 0
    dropped: int = 0
    """Parts and samples of batches that `drop_last` left out."""
    lost_tokens: int = 0
    """Tokens that are in no batch, for whichever of these reasons."""


@dataclass(frozen=True)
class Spans:
    """Which tokens of which sample are batched as one piece."""

    sample: IntArray
    start: IntArray
    length: IntArray

    def take(self, indices: IntArray) -> Spans:
        """These pieces, in this order."""
        return Spans(self.sample[indices], self.start[indices], self.length[indices])


def fit_lengths(
    lengths: IntArray,
    ids: Sequence[str],
    *,
    limit: int,
    min_length: int = 1,
    policy: OverflowPolicy = OverflowPolicy.ERROR,
) -> tuple[Spans, OverflowCounts]:
    """Pieces of at most `limit` tokens, by sample, and what was done to get there."""
    too_short = lengths < min_length
    too_long = (lengths > limit) & ~too_short  # with a small budget a sample may be both
    if policy is OverflowPolicy.ERROR and too_long.any():
        first = int(np.argmax(too_long))
        raise UserError(
            f"sample {ids[first]!r} has {lengths[first]} tokens; {limit} is the most "
            f"({too_long.sum()} of {len(lengths)} samples are longer).\n"
            "Raise the budget and overflow_max, or choose what to do: truncate, split or skip."
        )
    parts = np.ones(len(lengths), np.int64)
    if policy is OverflowPolicy.SPLIT:
        parts[too_long] = -(-lengths[too_long] // limit)
    elif policy is OverflowPolicy.SKIP:
        parts[too_long] = 0
    parts[too_short] = 0

    sample = np.repeat(np.arange(len(lengths)), parts)
    start = (np.arange(len(sample)) - offsets_of(parts)[sample]) * limit
    length = np.minimum(lengths[sample] - start, limit)
    long_ones = int(too_long.sum())
    counts = OverflowCounts(
        skipped=long_ones if policy is OverflowPolicy.SKIP else 0,
        too_short=int(too_short.sum()),
        truncated=long_ones if policy is OverflowPolicy.TRUNCATE else 0,
        split=long_ones if policy is OverflowPolicy.SPLIT else 0,
        lost_tokens=int(lengths.sum() - length.sum()),
    )
    return Spans(sample, start, length), counts
