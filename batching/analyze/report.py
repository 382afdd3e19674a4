"""What each way of batching makes of the same samples, and which one to take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from batching.analyze.edges import suggest_edges
from batching.analyze.text import bar, percent
from batching.core import BatchShapeHistogram, BucketSpec, IntArray, OverflowPolicy, PadPolicy
from batching.core.arrays import as_lengths
from batching.planning import BatchingConfig, BatchPlanBuilder
from batching.planning.config import LONGEST_PACKED
from query_mutator.base.errors import UserError
from query_mutator.base.tables import layout
from query_mutator.base.terminal import counted

CLOSE = 0.02
"""Ways that differ by less than this share are as good as each other: the simplest is taken."""
IN_USE = "buckets"
BAR_WIDTH = 20


@dataclass(frozen=True)
class Way:
    """One way of batching, with what it makes of the samples."""

    key: str
    name: str
    efficiency: float
    """The share of places that hold a token."""
    num_batches: int
    num_shapes: int
    """Distinct shapes of batches: each may have to be compiled."""
    padding_tokens: int
    advice: str
    """How to have it, and what it takes."""


@dataclass(frozen=True)
class EfficiencyReport:
    """The ways to batch some samples within a token budget, the simplest first."""

    num_samples: int
    num_tokens: int
    token_budget: int
    truncated: int
    """Samples that are longer than a row may be; the figures are for their first tokens."""
    ways: tuple[Way, ...]

    @property
    def best(self) -> Way:
        """The simplest of the ways that are about as good as the most efficient one."""
        most = max(way.efficiency for way in self.ways)
        return next(way for way in self.ways if way.efficiency >= most - CLOSE)

    @property
    def recommendation(self) -> str:
        """What to do, in a sentence."""
        best, in_use = self.best, next(way for way in self.ways if way.key == IN_USE)
        gain = f"{best.advice}: {percent(best.efficiency)} of all places then hold tokens"
        if best is in_use:
            return f"{gain}, and no other way gains more than {percent(CLOSE)}."
        return f"{gain}, against {percent(in_use.efficiency)} with the {in_use.name}."

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self) | {"best": self.best.key, "recommendation": self.recommendation}

    def to_text(self) -> str:
        """A table with bars for a terminal, and the recommendation."""
        header = ["way", "efficiency", "", "batches", "shapes", "padding"]
        rows = [
            [
                way.name,
                percent(way.efficiency),
                bar(way.efficiency, BAR_WIDTH).ljust(BAR_WIDTH),
                f"{way.num_batches:,}",
                f"{way.num_shapes:,}",
                f"{way.padding_tokens:,}",
            ]
            for way in self.ways
        ]
        lines = [
            f"{counted(self.num_samples, 'sample')}, {counted(self.num_tokens, 'token')}, at most "
            f"{self.token_budget:,} tokens a batch",
            layout([header, *rows]),
            self.recommendation,
        ]
        if self.truncated:
            cut = f"{counted(self.truncated, 'sample')} too long for a row, counted as cut off"
            lines.insert(1, cut)
        return "\n".join(lines)


def efficiency_report(
    lengths: npt.ArrayLike, token_budget: int, spec: BucketSpec | None = None, seed: int = 42
) -> EfficiencyReport:
    """Batches the samples in every way, for real, and compares what came of it."""
    spec = spec or BucketSpec.default()
    lengths = as_lengths(lengths)
    lengths = lengths[lengths >= spec.min_length]
    if not len(lengths):
        raise UserError("there are no lengths; build a length cache of some samples first")
    longest = min(spec.overflow_max, token_budget)
    truncated = int((lengths > longest).sum())
    lengths = np.minimum(lengths, longest)
    ways = []
    for key, name, advice, config in _ways(lengths, token_budget, spec, seed):
        epoch = BatchPlanBuilder(lengths, config).build(1).epochs[0]
        metrics, shapes = epoch.metrics, BatchShapeHistogram.of(epoch.table)
        ways.append(
            Way(
                key,
                name,
                efficiency=metrics.efficiency,
                num_batches=metrics.num_batches,
                num_shapes=shapes.num_shapes,
                padding_tokens=metrics.padding_tokens,
                advice=advice,
            )
        )
    return EfficiencyReport(len(lengths), int(lengths.sum()), token_budget, truncated, tuple(ways))


def _ways(
    lengths: IntArray, token_budget: int, spec: BucketSpec, seed: int
) -> Iterator[tuple[str, str, str, BatchingConfig]]:
    """The ways there are: key, name, how to have it, and its settings."""
    most = spec.overflow_max
    optimal = suggest_edges(lengths, max(1, len(spec.edges)), overflow_max=most)
    edges, best_edges = (",".join(map(str, one.edges)) or "none" for one in (spec, optimal))
    in_use = BatchingConfig.predictable(
        token_budget, spec.edges, most, seed, on_overflow=OverflowPolicy.TRUNCATE
    )
    no_edges = replace(in_use, bucket_edges=())
    best = replace(in_use, bucket_edges=optimal.edges)
    yield "pad_all", f"padding all to {most}", f"Pad every sample to {most} tokens", no_edges
    yield IN_USE, f"edges in use {edges}", f"Keep buckets with the edges {edges}", in_use
    advice = f"Use buckets with the edges {best_edges}"
    yield "optimal_buckets", f"best edges {best_edges}", advice, best
    advice = "Put samples of like lengths together and pad each batch to its longest (pad_to_max)"
    by_length = replace(no_edges, pad_policy=PadPolicy.PAD_TO_MAX, shuffle=True)
    yield "sorted", "like lengths together", advice, by_length
    if min(most, token_budget) <= LONGEST_PACKED:
        advice = "Pack several samples into each row (throughput), with attention by segment"
        packed = BatchingConfig.throughput(token_budget, (), most, seed)
        yield "packing", "packing", advice, packed
