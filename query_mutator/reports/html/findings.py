"""From what a run left to what can be seen in it: a figure for each finding, with its sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from query_mutator.reports.events import Curve
from query_mutator.reports.html.digest import RIGHT, Digest, UpdateDigest, digest_run, finite
from query_mutator.reports.html.figures import (
    ALL,
    Cell,
    Curves,
    Distribution,
    HeatMap,
    Line,
    Name,
    Numbers,
    Stack,
    stacked,
)
from query_mutator.reports.html.markup import name
from query_mutator.reports.html.scales import signed
from query_mutator.reports.runs import Run
from query_mutator.runs import tags
from query_mutator.runs.directory import RunDirectory

TIMES = {
    tags.TIME_TARGET: "target",
    tags.TIME_MUTATION: "mutator",
    tags.TIME_JUDGE: "judge",
    tags.TIME_EMBEDDING: "embedding",
    tags.TIME_LEARNING: "learning",
    tags.TIME_IDLE: "idle",
}
"""Slot-seconds of an update by what they were spent on; together all that there were."""
RETURN_LABEL = "mean return (gain in score)"
UNCHANGED = "0: question left unchanged"
MOST_CATEGORIES = 20
MOST_OPERATORS = 12
BINS = 10
ENOUGH = 10
"""Uses from which on a cell of the heat map is spoken of."""


@dataclass(frozen=True)
class Material:
    """One run, read."""

    run: Run
    digest: Digest
    evaluation: dict[str, Any] | None = None


def read(run: Run) -> Material:
    """All that the report needs of a run."""
    return Material(run, digest_run(run.path), _evaluation(run.path))


def _evaluation(path: Path) -> dict[str, Any] | None:
    found = RunDirectory(path / "evaluation")
    if not (found.path / "evaluation.json").is_file():
        return None
    figures = found.read_json("evaluation.json")
    verdict = figures.get("verdict")
    known = isinstance(verdict, dict) and isinstance(verdict.get("sentence"), str)
    return figures if known else None


def learning(material: Material) -> Curves | None:
    """The return of each update with its interval, and the held-out curve."""
    line = training_line(material, "training")
    if line is None:
        return None
    lines = [line]
    if (heldout := heldout_line(material, "held-out")) is not None:
        lines.append(heldout)
    says = ": ".join(part for part in learned(material.digest) if part)
    return Curves("learning", says, RETURN_LABEL, lines, UNCHANGED)


def training_line(material: Material, label: str) -> Line | None:
    """The mean return by steps, with its 95 % interval; None where no episode has ended."""
    points = [(steps, update) for steps, update in material.digest.points() if update.episodes]
    if not points:
        return None
    x = np.array([steps for steps, _ in points], float)
    y = np.array([update.mean for _, update in points])
    half = np.array([update.half_interval for _, update in points])
    return Line(label, x, y, y - half, y + half)


def heldout_line(material: Material, label: str) -> Line | None:
    """The held-out curve; None where none was drawn."""
    curve = material.run.curves.get(tags.HELDOUT)
    if curve is None:
        return None
    known = np.isfinite(curve.values)
    if not known.any():
        return None
    x, y = curve.steps[known].astype(float), curve.values[known]
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), 40)).round().astype(int))
    return Line(label, x[chosen], y[chosen], sparse=True)


def learned(digest: Digest) -> tuple[str, str]:
    """What training did to the return, and the figures that show it."""
    first, last = digest.tenths()
    if not first.episodes or not last.episodes:
        return "How the return developed", ""
    figures = f"a return of {signed(first.mean)} at first, {signed(last.mean)} at last"
    change = last.mean - first.mean
    error = math.hypot(_or_infinite(first), _or_infinite(last))
    if abs(change) <= error:
        return "No clear change during training", figures
    better = "better" if change > 0 else "worse"
    return f"The rewrites of training questions got {better}", figures


def time_spent(material: Material) -> Stack | None:
    """Where the time of the slots went; None where it was not logged."""
    curves = {
        label: curve
        for tag, label in TIMES.items()
        if (curve := material.run.curves.get(tag)) is not None
    }
    if not curves:
        return None
    x, seconds = _aligned(curves)
    whole = np.sum(list(seconds.values()), axis=0)
    if not len(x) or not (whole > 0).all():
        return None
    shares = {label: values / whole for label, values in seconds.items()}
    total = float(whole.sum())
    used = {label: float(values.sum()) / total for label, values in seconds.items()}
    most = max(used, key=lambda label: used[label])
    most_of_it = f"the {most} model" if most in ("target", "mutator", "judge") else most
    spent = "Slots stood idle for" if most == "idle" else f"Most of the time went to {most_of_it}:"
    says = f"{spent} {used[most]:.0%}"
    if most != "idle" and "idle" in used:
        says += f"; slots stood idle for {used['idle']:.0%}"
    order = [label for label in TIMES.values() if label in shares]
    layers = [(label, shares[label]) for label in order]
    return Stack("time", says, "share of the time of all slots", x, layers)


def _aligned(curves: dict[str, Curve], most: int = 100) -> tuple[Numbers, dict[str, Numbers]]:
    """The curves at the steps that all have, long ones added up over neighbouring steps."""
    steps = [curve.steps for curve in curves.values()]
    common = steps[0]
    for other in steps[1:]:
        common = np.intersect1d(common, other)
    together = max(1, math.ceil(len(common) / most))
    starts = np.arange(0, len(common), together)
    ends = np.minimum(starts + together, len(common)) - 1
    found = {}
    for label, curve in curves.items():
        values = np.nan_to_num(curve.values[np.isin(curve.steps, common)])
        found[label] = np.add.reduceat(np.maximum(values, 0), starts) if len(common) else values
    return common[ends].astype(float), found


def operators_used(digest: Digest) -> Stack | None:
    """The share of every operator over training."""
    points = digest.points()
    if not points:
        return None
    names = sorted({used for _, update in points for used in update.operators})
    shares = {
        name(used): np.array([update.operators[used] / update.steps for _, update in points])
        for used in names
    }
    first, last = (end.operators for end in digest.tenths())
    changes = {
        used: last[used] / sum(last.values()) - first[used] / sum(first.values()) for used in names
    }
    most = max(names, key=lambda used: changes[used])
    at_first, at_last = (end[most] / sum(end.values()) for end in (first, last))
    figures = f"from {at_first:.0%} of its choices to {at_last:.0%}"
    says = f"Chosen more and more often: “{name(most)}”, {figures}"
    if changes[most] < 0.05:
        says = "The policy kept to its first mix of operators"
    x = np.array([steps for steps, _ in points], float)
    return stacked("operators", says, "share of choices", x, shares)


def heat_map(digest: Digest) -> HeatMap | None:
    """Which rewrite helps which kind of question."""
    operators, categories = digest.names(0)[:MOST_OPERATORS], digest.names(1)[:MOST_CATEGORIES]
    if not operators:
        return None
    cells: dict[tuple[Name, Name], Cell] = {
        (operator, category): cell
        for operator in (*operators, ALL)
        for category in (*categories, ALL)
        if (cell := digest.cell(operator, category)) is not None
    }
    return HeatMap("heatmap", _helps_most(cells), operators, sorted(categories), cells)


def _helps_most(cells: dict[tuple[Name, Name], Cell]) -> str:
    single = {
        (name(operator), name(category)): cell
        for (operator, category), cell in cells.items()
        if operator is not ALL and category is not ALL and cell.count >= ENOUGH
    }
    if not single:
        return "Which rewrite helps which kind of question"
    best = max(single, key=lambda key: single[key].gain)
    worst = min(single, key=lambda key: single[key].gain)
    says = f"{best[0]} helps {best[1]} most ({signed(single[best].gain, 2)})"
    if single[best].gain <= 0:
        return f"No rewrite helps any kind of question; {best[0]} on {best[1]} comes closest"
    if single[worst].gain < 0:
        says += f"; {worst[0]} hurts {worst[1]} most ({signed(single[worst].gain, 2)})"
    return says


def scores(digest: Digest) -> Distribution | None:
    """Scores of the questions unchanged and as the policy left them, late in training."""
    before, after = digest.last_quarter()
    if not len(before):
        return None
    low, high = (float(edge(np.concatenate([before, after]))) for edge in (np.min, np.max))
    low, high = min(0.0, math.floor(low * 10) / 10), max(1.0, math.ceil(high * 10) / 10)
    if high - low > 100:  # an objective of the user's may score in any unit
        low, high = float(min(before.min(), after.min())), float(max(before.max(), after.max()))
    edges = np.linspace(low, high, BINS + 1)
    old, new = (np.histogram(values, edges)[0] / len(values) for values in (before, after))
    right = [float(np.mean(values >= RIGHT)) for values in (before, after)]
    says = f"{right[0]:.0%} of the answers were right before the rewrite, {right[1]:.0%} after it"
    return Distribution("scores", says, "share of answers", "score", edges, old, new)


def evaluated_after(material: Material) -> int | None:
    """The steps after which the run was evaluated, where it has gone on since; else None."""
    then = finite((material.evaluation or {}).get("env_steps"))
    last = finite((material.run.summary or {}).get("env_steps"))
    return None if then is None or last is None or then == last else int(then)


def _or_infinite(update: UpdateDigest) -> float:
    half = update.half_interval
    return half if math.isfinite(half) else math.inf
