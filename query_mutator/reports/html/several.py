"""Several runs beside each other: their curves, grouped by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from query_mutator.reports.comparison import (
    MINUTE,
    STEP,
    Comparison,
    GroupCell,
    compare,
    default_tags,
)
from query_mutator.reports.groups import group_runs
from query_mutator.reports.html.digest import finite
from query_mutator.reports.html.figures import MOST_COLOURS, Curves, Line
from query_mutator.reports.html.findings import (
    RETURN_LABEL,
    UNCHANGED,
    Material,
    evaluated_after,
    heldout_line,
    training_line,
)
from query_mutator.reports.html.markup import Markup, name
from query_mutator.reports.html.scales import signed
from query_mutator.reports.html.sections import duration, with_bounds
from query_mutator.reports.statistics import FEW_SEEDS
from query_mutator.reports.tables import number, spread_heading
from query_mutator.runs.tags import SCORES

MOST_IN_TABLE = 40
BETTER = "P(better): the probability that one of its seeds is better than one of the first group's."
Row = tuple[str, ...]


@dataclass(frozen=True)
class Seeds:
    """Runs that differ in nothing but their seed."""

    name: str
    seeds: list[list[Material]]
    """The runs of each seed."""


def together(materials: Sequence[Material]) -> list[Seeds]:
    """The runs by their settings."""
    of_run = {material.run.name: material for material in materials}
    return [
        Seeds(name(group.name), [[of_run[run.name] for run in runs] for runs in group.by_seed()])
        for group in group_runs([material.run for material in materials])
    ]


def curves(found: Sequence[Seeds], *, heldout: bool) -> Curves | None:
    """A line for each group, with the interval over its seeds, or for each run with its own.

    Of more than there are colours for, those are drawn that are highest at the last step which all
    of them have.
    """
    make = heldout_line if heldout else training_line
    lines = []
    for group in found:
        seeds = []
        for runs in group.seeds:
            own = [line for run in runs if (line := make(run, run.run.name)) is not None]
            if len(own) > 1:  # repetitions of a seed say nothing about other seeds
                own = [replace(_mean_line(group.name, own), low=None, high=None, each=())]
            seeds += own
        if seeds:
            lines.append(_mean_line(group.name, seeds))
    if not lines:
        return None
    end = _last_common_step(lines)
    highest = sorted(range(len(lines)), key=lambda place: -_at(lines[place], end))
    drawn = sorted(highest[:MOST_COLOURS])
    left = len(lines) - len(drawn)
    left_out = f"Drawn are the {len(drawn)} highest at step {end:,.0f}; {left} more are left out."
    return Curves(
        "heldout" if heldout else "learning",
        _says(lines, end, "on held-out questions" if heldout else "in training"),
        RETURN_LABEL,
        [lines[place] for place in drawn],
        UNCHANGED,
        left_out=left_out if left else "",
    )


def curves_note(figure: Curves) -> str:
    """What the lines and bands of `curves` are."""
    bands = "Bands are 95 % intervals over the episodes of a point."
    if any(line.each for line in figure.lines):
        bands = (
            "A thick line is the mean of its seeds, thin ones are the seeds, the band is the 95 % "
            f"interval of the mean (from {FEW_SEEDS} seeds on; around one seed, over its episodes)."
        )
    return f"{bands} {figure.left_out}".strip()


def _says(lines: Sequence[Line], end: float, where: str) -> str:
    """Who is ahead where all lines can be compared, if intervals over seeds part there."""
    if len(lines) == 1:
        first, last = signed(lines[0].y[0]), signed(lines[0].y[-1])
        return f"The seeds together {where}: {first} at first, {last} at last"
    if any(line.x[0] > end for line in lines):
        return f"Not measured {where} at a common step"
    best, *others = sorted(lines, key=lambda line: -_at(line, end))
    own, *theirs = (_over_seeds(line, end) for line in (best, *others))
    if own is not None and all(ends is not None and ends[1] < own[0] for ends in theirs):
        return f"{best.name} is ahead {where}: {signed(_at(best, end))} at step {end:,.0f}"
    return f"No clear difference {where} at step {end:,.0f}"


def _last_common_step(lines: Sequence[Line]) -> float:
    return min(float(line.x[-1]) for line in lines)


def _at(line: Line, step: float) -> float:
    return float(np.interp(step, line.x, line.y))


def _over_seeds(line: Line, step: float) -> tuple[float, float] | None:
    """The interval over seeds at a step; None where too few seeds, or none by then, have one."""
    if not line.each or line.low is None or line.high is None or line.x[0] > step:
        return None
    return float(np.interp(step, line.x, line.low)), float(np.interp(step, line.x, line.high))


def _mean_line(label: str, lines: Sequence[Line]) -> Line:
    """The mean of lines where all of them are, with its 95 % interval; one line as it is."""
    from scipy.special import stdtrit

    if len(lines) == 1:
        return replace(lines[0], name=label)
    start, end = max(float(line.x[0]) for line in lines), _last_common_step(lines)
    longest = max(lines, key=lambda line: len(line.x))
    x = longest.x[(longest.x >= start) & (longest.x <= end)]
    x = x if len(x) else np.array([end])
    rows = np.array([np.interp(x, line.x, line.y) for line in lines])
    error = rows.std(0, ddof=1) / np.sqrt(len(rows))
    mean, sparse = rows.mean(0), lines[0].sparse
    each = [(x, row) for row in rows]
    if len(rows) < FEW_SEEDS:
        return Line(label, x, mean, sparse=sparse, each=each)
    half = float(stdtrit(len(rows) - 1, 0.975)) * error
    return Line(label, x, mean, mean - half, mean + half, sparse=sparse, each=each)


def comparison_rows(materials: Sequence[Material]) -> tuple[Row, list[Row]]:
    """The runs side by side, the figures that matter in columns."""
    head = (
        *("run", "steps", "return at first", "at last", "held-out", "evaluated gain", "time"),
        *("model calls", "failed"),
    )
    rows: list[Row] = []
    for material in materials:
        digest, summary = material.digest, material.run.summary or {}
        first, last = digest.tenths() if digest.updates else (None, None)
        ends = [signed(end.mean) if end and end.episodes else "–" for end in (first, last)]
        rows.append(
            (
                material.run.name,
                f"{digest.transitions:,}",
                *ends,
                _known(summary.get("heldout_gain")),
                _evaluated(material),
                _known(summary.get("wall_time_s"), duration),
                _known(summary.get("model_calls"), "{:,.0f}".format),
                _known(summary.get("failed_calls"), "{:,.0f}".format),
            )
        )
    return head, rows


def compared(materials: Sequence[Material]) -> Comparison | None:
    """The metrics that matter, side by side; None where the runs have none in common."""
    runs = [material.run for material in materials]
    tags = default_tags(runs)
    return compare(runs, group_runs(runs), tags) if tags else None


def metric_rows(comparison: Comparison) -> tuple[Row, list[Row]]:
    """Best and last values of every metric and run, and where all runs can be compared."""
    head = ("metric", "run", "best", "at step", "at minute", "last")
    head_of_common = (
        f"at step {comparison.last_step:,}",
        f"at minute {number(comparison.last_minute)}",
    )
    rows: list[Row] = []
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


def group_tables(comparison: Comparison) -> list[tuple[str, Row, list[Row]]]:
    """What the seeds of each group come to, at the last step and the last minute that all have: a
    caption, a head and rows for each score.
    """
    places = {STEP: f"at step {comparison.last_step:,}"}
    places[MINUTE] = f"at minute {comparison.last_minute:.3g}"
    tables = []
    for tag in SCORES:
        views = {
            view: [comparison.group_cells.get((tag, g.name, view)) for g in comparison.groups]
            for view in places
        }
        cells = [cell for found in views.values() for cell in found]
        if not any(cells):
            continue
        columns = [_mean]
        heads = [f"interquartile mean {{}}, {spread_heading(cells)}"]
        if any(cell is not None and cell.improvement is not None for cell in cells):
            columns.append(_better)
            heads.append("P(better) {}")
        head = ("group", "seeds", *(text.format(at) for at in places.values() for text in heads))
        rows = [
            (
                name(group.name),
                str(group.seeds),
                *("–" if cell is None else column(cell) for cell in found for column in columns),
            )
            for group, *found in zip(comparison.groups, *views.values(), strict=True)
        ]
        tables.append((tag, head, rows))
    return tables


def _mean(cell: GroupCell) -> Markup:
    bounds = "{} to {}".format(*map(signed, cell.interval)) if cell.interval else ""
    missing = f"{cell.missing} seeds" if cell.missing else ""
    return with_bounds(signed(cell.iqm), ", ".join(filter(None, (bounds, missing))))


def _better(cell: GroupCell) -> Markup:
    ends = cell.improvement_interval
    better = "–" if cell.improvement is None else f"{cell.improvement:.0%}"
    return with_bounds(better, "{:.0%} to {:.0%}".format(*ends) if ends else "")


def _evaluated(material: Material) -> str:
    after = evaluated_after(material)
    stale = "" if after is None else f" after {after:,} steps"
    for way in (material.evaluation or {}).get("ways") or []:
        if isinstance(way, dict) and way.get("name") == "unchanged":
            lead = way.get("policy_ahead")
            lead = lead if isinstance(lead, dict) else {}
            low, high = lead.get("low"), lead.get("high")
            known = finite(low) is not None and finite(high) is not None
            interval = f" [{_known(low)}, {_known(high)}]" if known else ""
            return f"{_known(lead.get('mean'))}{interval}{stale}"
    return "–"


def _known(value: Any, write: Callable[[float], str] = signed) -> str:
    known = finite(value)
    return "–" if known is None else write(known)
