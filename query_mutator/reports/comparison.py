"""Compares runs: bests, last values, the same step, the same minute, and groups of seeds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from query_mutator.reports.events import Curve
from query_mutator.reports.groups import Group
from query_mutator.reports.runs import Run
from query_mutator.reports.statistics import (
    FEW_SEEDS,
    improvement_interval,
    interquartile_mean,
    interval,
    probability_of_improvement,
)
from query_mutator.runs.metric_table import METRICS
from query_mutator.runs.metrics import better_of, is_counted

logger = logging.getLogger(__name__)

TAIL = 0.1
"""The part before a common step or minute whose mean stands for the run there."""
LARGEST_RATIO = 100
STEP, MINUTE = "step", "minute"


@dataclass(frozen=True)
class Point:
    """A value and where a curve had it."""

    value: float
    step: int
    minute: float


@dataclass(frozen=True)
class Cell:
    """One metric of one run."""

    points: int
    best: Point | None
    """None too where neither way is better, and of what is counted: see `total`."""
    last: Point | None
    at_step: float | None
    """At the last step, and the last minute, that all runs have reached."""
    at_minute: float | None
    total: float | None = None
    """All points together, of what is counted."""


@dataclass(frozen=True)
class GroupCell:
    """One metric of one group of seeds, at the last common step or minute."""

    seeds: int
    """Those that have a value there; a slow one may have none by the last common minute."""
    of: int
    """Seeds of the group."""
    iqm: float
    interval: tuple[float, float] | None
    """Of fewer than `FEW_SEEDS` the range of their values; None for one."""
    improvement: float | None
    """Probability that one of its seeds is better than one of the first group's; None where a
    side has only one.
    """
    improvement_interval: tuple[float, float] | None

    @property
    def few(self) -> bool:
        """Whether its seeds are too few for an interval, and `interval` is their range."""
        return self.seeds < FEW_SEEDS

    @property
    def missing(self) -> str:
        """How many of the seeds its mean is of, where it is not all; else ""."""
        return f"{self.seeds} of {self.of}" if self.seeds < self.of else ""


@dataclass(frozen=True)
class Goal:
    """A value to be reached."""

    tag: str
    value: float
    better: str

    def __str__(self) -> str:
        return f"{self.tag} {'≥' if self.better == 'higher' else '≤'} {self.value:g}"


@dataclass(frozen=True)
class Comparison:
    """Everything that is told about several runs."""

    runs: list[Run]
    groups: list[Group]
    tags: list[str]
    last_step: int
    last_minute: float
    cells: dict[tuple[str, str], Cell]
    """By tag and name of a run."""
    group_cells: dict[tuple[str, str, str], GroupCell]
    """By tag, name of a group, and `step` or `minute`."""
    reached: dict[tuple[Goal, str], Point | None]
    """Where each goal was first reached, by goal and name of a run."""

    @property
    def several_seeds(self) -> bool:
        return any(group.seeds > 1 for group in self.groups)


def compare(
    runs: Sequence[Run], groups: Sequence[Group], tags: Sequence[str], goals: Sequence[Goal] = ()
) -> Comparison:
    """The runs side by side; the first run, and the first group, are the baseline.

    A run without a single point would cut all others at step 0: it is left out and told of.
    """
    runs, groups = _with_points(runs, groups)
    last_step = min(_reach(run, tags, STEP) for run in runs)
    last_minute = min(_reach(run, tags, MINUTE) for run in runs)
    cells = {
        (tag, run.name): _cell(tag, run.curves.get(tag), last_step, last_minute)
        for tag in tags
        for run in runs
    }
    group_cells = {}
    for tag in tags:
        for view in (STEP, MINUTE):
            baseline = _values(cells, tag, groups[0], view)
            for group in groups:
                values = _values(cells, tag, group, view)
                if values:
                    against = [] if group is groups[0] else baseline
                    cell = _group_cell(tag, values, against, of=group.seeds)
                    group_cells[tag, group.name, view] = cell
    reached = {
        (goal, run.name): _first_reached(run.curves.get(goal.tag), goal)
        for goal in goals
        for run in runs
    }
    return Comparison(
        list(runs), list(groups), list(tags), int(last_step), last_minute, cells, group_cells,
        reached,
    )  # fmt: skip


def default_tags(runs: Sequence[Run]) -> list[str]:
    """The metrics that matter and that some run has; of other programs' runs all that they have."""
    present = {tag for run in runs for tag in run.curves}
    known = [metric.tag for metric in METRICS if metric.matters and metric.tag in present]
    foreign = [run for run in runs if not any(tag in run.curves for tag in known)]
    return known + sorted({tag for run in foreign for tag in run.curves})


def relative(value: float | None, baseline: float | None, values: Sequence[float]) -> str:
    """How a value stands to the baseline: a ratio, or a difference where ratios mislead.

    Among values near or below 0, or far apart, a ratio says nothing.

    >>> relative(3.0, 2.0, [2.0, 3.0]), relative(0.1, -0.2, [0.1, -0.2])
    ('×1.50', '+0.3')
    """
    if value is None or baseline is None:
        return "–"
    if ratio_makes_sense(values):
        return f"×{value / baseline:.2f}"
    return f"{value - baseline:+.3g}"


def ratio_makes_sense(values: Sequence[float]) -> bool:
    """Whether values are all above 0 and of like size."""
    return bool(values) and min(values) > 0 and max(values) / min(values) <= LARGEST_RATIO


def value_at(tag: str, curve: Curve | None, limit: float, view: str) -> float | None:
    """What a curve had come to at a step or minute: the mean of the tenth before it, or for what
    is counted the sum of all before it; what is not a finite number is left out.
    """
    if curve is None:
        return None
    along = curve.steps if view == STEP else curve.minutes
    inside = (along <= limit) & np.isfinite(curve.values)
    if not inside.any():
        return None
    if is_counted(tag):
        return float(curve.values[inside].sum())
    # At least the last point, however far before the limit it is.
    begin = min(limit * (1 - TAIL), along[inside].max())
    return float(curve.values[inside & (along >= begin)].mean())


def best_point(curve: Curve, better: str) -> Point | None:
    """The best value and where it was first reached; NaN and infinities never win."""
    finite = np.isfinite(curve.values)
    if not better or not finite.any():
        return None
    worst = -np.inf if better == "higher" else np.inf
    values = np.where(finite, curve.values, worst)
    index = int(values.argmax() if better == "higher" else values.argmin())
    return _point(curve, index)


def _with_points(
    runs: Sequence[Run], groups: Sequence[Group]
) -> tuple[Sequence[Run], Sequence[Group]]:
    empty = {run.name for run in runs if not run.curves}
    if not empty or len(empty) == len(runs):
        return runs, groups
    for name in sorted(empty):
        logger.warning("%s has no points yet: it is left out", name)
    left = [
        Group(group.name, [run for run in group.runs if run.name not in empty]) for group in groups
    ]
    return [run for run in runs if run.name not in empty], [group for group in left if group.runs]


def _reach(run: Run, tags: Sequence[str], view: str) -> float:
    """How far a run has come."""
    curves = [run.curves[tag] for tag in tags if tag in run.curves] or list(run.curves.values())
    ends = [curve.steps.max() if view == STEP else curve.minutes.max() for curve in curves]
    return float(max(ends, default=0))


def _cell(tag: str, curve: Curve | None, last_step: float, last_minute: float) -> Cell:
    if curve is None:
        return Cell(0, None, None, None, None)
    return Cell(
        len(curve),
        None if is_counted(tag) else best_point(curve, better_of(tag)),
        _point(curve, len(curve) - 1),
        value_at(tag, curve, last_step, STEP),
        value_at(tag, curve, last_minute, MINUTE),
        value_at(tag, curve, np.inf, STEP) if is_counted(tag) else None,
    )


def _point(curve: Curve, index: int) -> Point:
    value, step, minute = curve.values[index], curve.steps[index], curve.minutes[index]
    return Point(float(value), int(step), float(minute))


def _values(cells: dict[Any, Cell], tag: str, group: Group, view: str) -> list[float]:
    """A value for each seed that has one: the mean of its runs."""
    values = []
    for runs in group.by_seed():
        found = [cells[tag, run.name] for run in runs]
        own = [cell.at_step if view == STEP else cell.at_minute for cell in found]
        if known := [value for value in own if value is not None]:
            values.append(float(np.mean(known)))
    return values


def _group_cell(tag: str, values: list[float], baseline: list[float], *, of: int) -> GroupCell:
    improvement = improvement_bounds = None
    if min(len(values), len(baseline)) > 1 and (better := better_of(tag)):
        improvement = float(probability_of_improvement(values, baseline, better=better))
        improvement_bounds = improvement_interval(values, baseline, better=better)
    return GroupCell(
        len(values),
        of,
        float(interquartile_mean(values)),
        interval(values),
        improvement,
        improvement_bounds,
    )


def _first_reached(curve: Curve | None, goal: Goal) -> Point | None:
    if curve is None:
        return None
    higher = goal.better == "higher"
    there = curve.values >= goal.value if higher else curve.values <= goal.value
    there &= np.isfinite(curve.values)
    return _point(curve, int(there.argmax())) if there.any() else None
