"""The gap between twins: what rewriting could do at most, and what of it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from query_mutator.evaluation.apart import TERMS, apart, part
from query_mutator.evaluation.comparison import POLICY
from query_mutator.evaluation.measuring import UNCHANGED, Measured, Tried
from query_mutator.evaluation.statistics import (
    FEWEST_SHOWN,
    Difference,
    Numbers,
    paired_differences,
)
from query_mutator.operators import Operator

SCORE = "score"
REWRITER = "the rewriter"


@dataclass(frozen=True)
class Sides:
    """The same questions asked clearly and messily, both unchanged, by one measure."""

    clear: float
    messy: float
    gap: Difference

    @property
    def told(self) -> bool:
        """Whether the clear wording is shown to do better."""
        return self.gap.above_0 and self.gap.groups >= FEWEST_SHOWN


@dataclass(frozen=True)
class Closed:
    """What a way of asking gains on the messy wording."""

    gain: Difference
    share: Difference | None
    """Of the gap; None where the gap is not told from 0."""


@dataclass(frozen=True)
class Closer:
    """A way of asking that may close the gap."""

    name: str
    asks_mutator: bool
    """Whether it is one in which the mutator model rewrites the question."""
    closes: dict[str, Closed]
    """By measure, as the sides of the gap."""


@dataclass(frozen=True)
class Gap:
    """How much better the same questions are answered when they are asked clearly."""

    pairs: int
    sides: dict[str, Sides]
    """By measure: `score`, and `facts` and `wording` where the objective tells them."""
    closers: tuple[Closer, ...]
    """The policy, every operator, the mean of those that ask the mutator model, contenders."""

    def closed_by(self, name: str, measure: str = SCORE) -> Closed:
        """What one of the ways closes of the gap."""
        return next(one.closes[measure] for one in self.closers if one.name == name)


def find_gap(
    pairs: Sequence[tuple[Measured, Measured]], operators: Sequence[Operator], *, seed: int = 0
) -> Gap | None:
    """The gap over pairs of a clear and a messy wording, and what closes it; None without pairs.

    The intervals of gains hold together within a measure, as do those of shares.
    """
    if not pairs:
        return None
    groups = [messy.meaning for _, messy in pairs]
    clear = [[one.ways[UNCHANGED]] for one, _ in pairs]
    messy = [[one.ways[UNCHANGED]] for _, one in pairs]
    above = {name: _values(clear, name) - _values(messy, name) for name in (SCORE, *TERMS)}
    gaps = paired_differences({SCORE: above[SCORE]}, groups=groups, seed=seed)
    gaps |= apart({name: above[name] for name in TERMS}, groups, seed=seed)
    sides = {
        name: Sides(_mean(_values(clear, name)), _mean(_values(messy, name)), gap)
        for name, gap in gaps.items()
    }
    ways = _ways([one for _, one in pairs], operators)
    closed = {}
    for name, side in sides.items():
        gains = {way: _values(tried, name) - _values(messy, name) for way, tried in ways.items()}
        closed[name] = _closed(side, above[name], gains, groups, seed)
    asking = {operator.name for operator in operators if operator.needs_model} | {REWRITER}
    asking |= set(pairs[0][1].contenders)
    closers = [
        Closer(way, way in asking, {name: by_way[way] for name, by_way in closed.items()})
        for way in ways
    ]
    return Gap(len(pairs), sides, tuple(closers))


def _ways(messy: Sequence[Measured], operators: Sequence[Operator]) -> dict[str, list[list[Tried]]]:
    """What is made of each messy question: one answer, or several of which the mean counts."""
    ways = {POLICY: [[one.policy] for one in messy if one.policy is not None]}
    assert len(ways[POLICY]) == len(messy)
    ways |= {way.name: [[one.ways[way.name]] for one in messy] for way in operators}
    asking = [operator.name for operator in operators if operator.needs_model]
    if len(asking) > 1:
        ways[REWRITER] = [[one.ways[name] for name in asking] for one in messy]
    ways |= {name: [[one.contenders[name]] for one in messy] for name in messy[0].contenders}
    return ways


def _closed(
    side: Sides,
    above: Numbers,
    gains: Mapping[str, Numbers],
    groups: Sequence[str],
    seed: int,
) -> dict[str, Closed]:
    """What each way gains, and the share of the gap that this is, over the pairs that tell it."""
    known = ~np.isnan(above)
    groups = [group for group, tells in zip(groups, known, strict=True) if tells]
    above, gains = above[known], {way: gain[known] for way, gain in gains.items()}
    found = paired_differences(gains, groups=groups, seed=seed)
    if not side.told:
        return {way: Closed(gain, None) for way, gain in found.items()}
    # A ratio of two means varies as the mean of these does, to first order.
    ratios = {way: gain.mean / side.gap.mean for way, gain in found.items()}
    around = {way: (gains[way] - ratio * above) / side.gap.mean for way, ratio in ratios.items()}
    spread = paired_differences(around, groups=groups, seed=seed)
    return {way: Closed(found[way], _moved(spread[way], by=ratios[way])) for way in found}


def _moved(difference: Difference, *, by: float) -> Difference:
    low, high = difference.low + by, difference.high + by
    return replace(difference, mean=difference.mean + by, low=low, high=high)


def _values(tried: Sequence[Sequence[Tried]], measure: str) -> Numbers:
    """A measure of each question, the mean over its answers."""
    cells = [
        [one.score if measure == SCORE else part(one, measure) for one in answers]
        for answers in tried
    ]
    return np.array(cells, float).mean(axis=1)


def _mean(values: Numbers) -> float:
    return float(np.nanmean(values))
