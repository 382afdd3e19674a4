"""Plain sentences about what a table of numbers hides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from query_mutator.base.terminal import counted
from query_mutator.reports.comparison import STEP, Comparison
from query_mutator.reports.events import Curve
from query_mutator.reports.groups import Group
from query_mutator.reports.runs import Run
from query_mutator.reports.statistics import FEW_SEEDS
from query_mutator.runs.metric_table import METRICS, Threshold
from query_mutator.runs.metrics import better_of
from query_mutator.runs.tags import LOSS, SCORES

SHOWN = 3
OTHER_LOSSES = ("train/loss",)
OTHER_SCORES = ("rollout/ep_rew_mean",)
"""What Stable-Baselines3 calls them."""


def cautions(comparison: Comparison) -> list[str]:
    """One line for each warning, the runs that it concerns named in it."""
    return [*_thresholds(comparison.runs), *_not_numbers(comparison), *_misleading_loss(comparison)]


def evidence(comparison: Comparison) -> str:
    """What the number of seeds allows to conclude."""
    groups = comparison.groups
    fewest = min(group.seeds for group in groups)
    if not comparison.several_seeds:
        if len(comparison.runs) == 1:
            return "One run, one seed: nothing is proven; repeat it with --seed 2, 3, …"
        return (
            "One seed each: nothing is proven, any difference may be chance. Repeat each run with "
            "--seed 2, 3, …: runs that differ only by seed are judged together."
        )
    if fewest == 1:
        alone = [group.name for group in groups if group.seeds == 1]
        return f"One seed alone proves nothing: {_listed(alone)}."
    if fewest < FEW_SEEDS:
        return (
            f"{fewest} seeds give no interval, only the range of seeds: a difference may be chance "
            f"even where ranges do not meet. Repeat with more seeds, {FEW_SEEDS} at least."
        )
    return "Intervals are 95 % bootstrap intervals of the interquartile mean over seeds."


def score_tag(runs: Sequence[Run]) -> str | None:
    """What these runs are judged by: the first score that all of them have."""
    for tag in (*SCORES, *OTHER_SCORES):
        if all(tag in run.curves for run in runs):
            return tag
    return None


def _thresholds(runs: Sequence[Run]) -> list[str]:
    lines = []
    for metric in METRICS:
        beyond: dict[Threshold, list[str]] = {}
        for run in runs:
            curve = run.curves.get(metric.tag)
            if curve is None or not np.isfinite(curve.values).any():
                continue
            for threshold in reversed(metric.thresholds):
                value, where = _judged(curve, threshold)
                if threshold.passed_by(value):
                    run_and_value = f"{run.name} ({value:.3g} {where})"
                    beyond.setdefault(threshold, []).append(run_and_value)
                    break
        for threshold, offences in beyond.items():
            which = "above" if threshold.above else "below"
            scope = f"all {len(runs)} runs, such as " if len(offences) == len(runs) > SHOWN else ""
            lines.append(
                f"{metric.tag} {which} {threshold.limit:g} in {scope}{_listed(offences)}: "
                f"{threshold.warning}"
            )
    return lines


def _judged(curve: Curve, threshold: Threshold) -> tuple[float, str]:
    """What a threshold is held against, and where it is: the mean, or the worst value."""
    finite = np.isfinite(curve.values)
    values, steps = curve.values[finite], curve.steps[finite]
    if threshold.on_average:
        return float(values.mean()), "on average"
    worst = int(values.argmax() if threshold.above else values.argmin())
    return float(values[worst]), f"at step {steps[worst]}"


def _not_numbers(comparison: Comparison) -> list[str]:
    lines = []
    for tag in comparison.tags:
        damaged = {
            run.name: int((~np.isfinite(run.curves[tag].values)).sum())
            for run in comparison.runs
            if tag in run.curves
        }
        where = [f"{name} ({counted(many, 'point')})" for name, many in damaged.items() if many]
        if where:
            lines.append(f"{tag} is not a finite number in {_listed(where)}: these are left out")
    return lines


def _misleading_loss(comparison: Comparison) -> list[str]:
    """Groups whose loss is lower than the first's while their score is worse."""
    score = score_tag(comparison.runs)
    losses = (LOSS, *OTHER_LOSSES)
    loss = next((tag for tag in losses if all(tag in r.curves for r in comparison.runs)), None)
    if score is None or loss is None or not {score, loss} <= set(comparison.tags):
        return []
    first, *others = comparison.groups
    had = _score_and_loss(comparison, first, score, loss)
    worse = []
    for group in others:
        got = _score_and_loss(comparison, group, score, loss)
        if got is None or had is None:
            continue
        lower_score = got[0] < had[0] if better_of(score) == "higher" else got[0] > had[0]
        if got[1] < had[1] and lower_score:
            worse.append(
                f"{group.name} ({loss} {got[1]:.3g} against {had[1]:.3g}, "
                f"{score} {got[0]:.3g} against {had[0]:.3g})"
            )
    if not worse:
        return []
    return [f"lower loss but worse score than {first.name} in {_listed(worse)}: the loss misleads"]


def _score_and_loss(
    comparison: Comparison, group: Group, score: str, loss: str
) -> tuple[float, float] | None:
    found = [comparison.group_cells.get((tag, group.name, STEP)) for tag in (score, loss)]
    if found[0] is None or found[1] is None:
        return None
    return found[0].iqm, found[1].iqm


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
