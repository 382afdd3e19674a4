"""Several runs beside each other: their curves, grouped by what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.comparison import MINUTE, STEP, Comparison, compare, default_tags
from experiments.groups import group_runs
from experiments.report.digest import finite
from experiments.report.figures import MOST_COLOURS, Curves, Line
from experiments.report.findings import (
    RETURN_LABEL,
    UNCHANGED,
    Material,
    heldout_line,
    training_line,
)
from experiments.report.markup import name
from experiments.report.scales import signed
from experiments.report.sections import duration
from experiments.tables import number
from training.metrics import SCORES

FEWEST_SEEDS = 3
"""With two, an interval is wider than any score."""
MOST_IN_TABLE = 40


@dataclass(frozen=True)
class Together:
    """Runs that differ in nothing but their seed."""

    name: str
    runs: list[Material]


def together(materials: Sequence[Material]) -> list[Together]:
    """The runs by their settings."""
    of_run = {material.run.name: material for material in materials}
    return [
        Together(name(group.name), [of_run[run.name] for run in group.runs])
        for group in group_runs([material.run for material in materials])
    ]


def curves(found: Sequence[Together], *, heldout: bool) -> Curves | None:
    """A line for each group, with the interval over its seeds, or for each run with its own."""
    lines = []
    for group in found:
        make = heldout_line if heldout else training_line
        own = [line for run in group.runs if (line := make(run, run.run.name)) is not None]
        if len(own) > 1:
            lines.append(_mean_line(group.name, own))
        elif own:
            lines.append(_named(own[0], group.name))
    if not lines:
        return None
    key = "heldout" if heldout else "learning"
    return Curves(key, _says(lines, heldout), RETURN_LABEL, lines[:MOST_COLOURS], UNCHANGED)


def _says(lines: Sequence[Line], heldout: bool) -> str:
    where = "on held-out questions" if heldout else "in training"
    if len(lines) == 1:
        first, last = signed(lines[0].y[0]), signed(lines[0].y[-1])
        return f"The seeds together {where}: {first} at first, {last} at last"
    best = max(lines, key=lambda line: float(line.y[-1]))
    return f"{best.name} ended highest {where}: {signed(best.y[-1])}"


def _mean_line(label: str, lines: Sequence[Line]) -> Line:
    """The mean over seeds, up to the end of the shortest, with its 95 % interval."""
    from scipy.special import stdtrit

    end = min(float(line.x[-1]) for line in lines)
    longest = max(lines, key=lambda line: len(line.x))
    x = longest.x[longest.x <= end]
    x = x if len(x) else np.array([end])
    rows = np.array([np.interp(x, line.x, line.y) for line in lines])
    error = rows.std(0, ddof=1) / np.sqrt(len(rows))
    mean, sparse = rows.mean(0), lines[0].sparse
    each = [(x, row) for row in rows]
    if len(rows) < FEWEST_SEEDS:
        return Line(label, x, mean, sparse=sparse, each=each)
    half = float(stdtrit(len(rows) - 1, 0.975)) * error
    return Line(label, x, mean, mean - half, mean + half, sparse=sparse, each=each)


def _named(line: Line, label: str) -> Line:
    return replace(line, name=label)


def comparison_rows(materials: Sequence[Material]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The runs side by side, the figures that matter in columns."""
    head = (
        *("run", "steps", "return at first", "at last", "held-out", "evaluated gain", "time"),
        *("model calls", "failed"),
    )
    rows: list[tuple[str, ...]] = []
    for material in materials:
        digest, summary = material.digest, material.run.summary or {}
        first, last = digest.tenths() if digest.updates else (None, None)
        ends = [signed(end.mean) if end and end.episodes else "–" for end in (first, last)]
        seconds = finite(summary.get("wall_time_s"))
        rows.append(
            (
                material.run.name,
                f"{digest.transitions:,}",
                *ends,
                _signed(summary.get("heldout_gain")),
                _evaluated(material.evaluation),
                "–" if seconds is None else duration(seconds),
                _count(summary.get("model_calls")),
                _count(summary.get("failed_calls")),
            )
        )
    return head, rows


def compared(materials: Sequence[Material]) -> Comparison | None:
    """The metrics that matter, side by side; None where the runs have none in common."""
    runs = [material.run for material in materials]
    tags = default_tags(runs)
    return compare(runs, group_runs(runs), tags) if tags else None


def metric_rows(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Best and last values of every metric and run, and where all runs can be compared."""
    head = ("metric", "run", "best", "at step", "at minute", "last")
    head_of_common = (
        f"at step {comparison.last_step:,}",
        f"at minute {number(comparison.last_minute)}",
    )
    rows: list[tuple[str, ...]] = []
    for tag in comparison.tags:
        for run in comparison.runs[:MOST_IN_TABLE]:
            cell = comparison.cells[tag, run.name]
            if cell.last is None:
                continue
            best = ("–",) * 3
            if cell.best is not None:
                place = (f"{cell.best.step:,}", f"{cell.best.minute:.1f}")
                best = (number(cell.best.value), *place)
            common = (number(cell.at_step), number(cell.at_minute))
            rows.append((tag, name(run.name), *best, number(cell.last.value), *common))
    return (*head, *head_of_common), rows


def group_rows(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """What the seeds of each kind come to, at the last step and the last minute that all have."""
    head = ("score", "runs of a kind", "compared at", "seeds", "interquartile mean")
    rows: list[tuple[str, ...]] = []
    at = {STEP: f"step {comparison.last_step:,}", MINUTE: f"minute {comparison.last_minute:.1f}"}
    for tag in SCORES:
        for view, place in at.items():
            for group in comparison.groups:
                cell = comparison.group_cells.get((tag, group.name, view))
                if cell is not None:
                    means = (_with_interval(cell.iqm, cell.interval, signs=True),)
                    better = _with_interval(cell.improvement, cell.improvement_interval)
                    told = (tag, name(group.name), place, str(group.seeds))
                    rows.append((*told, *means, better))
    return (*head, "probability of being better than the first"), rows


def _with_interval(
    value: float | None, ends: tuple[float, float] | None, *, signs: bool = False
) -> str:
    if value is None:
        return "–"

    def write(number: float) -> str:
        return signed(number) if signs else f"{number:.0%}"

    return f"{write(value)} [{write(ends[0])}, {write(ends[1])}]" if ends else write(value)


def _evaluated(evaluation: dict[str, Any] | None) -> str:
    for way in (evaluation or {}).get("ways") or []:
        if isinstance(way, dict) and way.get("name") == "unchanged":
            lead = way.get("policy_ahead")
            lead = lead if isinstance(lead, dict) else {}
            low, high = lead.get("low"), lead.get("high")
            known = finite(low) is not None and finite(high) is not None
            interval = f" [{_signed(low)}, {_signed(high)}]" if known else ""
            return f"{_signed(lead.get('mean'))}{interval}"
    return "–"


def _signed(value: Any) -> str:
    known = finite(value)
    return "–" if known is None else signed(known)


def _count(value: Any) -> str:
    known = finite(value)
    return "–" if known is None else f"{known:,.0f}"
