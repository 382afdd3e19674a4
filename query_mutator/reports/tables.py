"""A comparison as text: for the terminal, as Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from query_mutator.base.stored import without_infinities
from query_mutator.base.tables import as_markdown, layout
from query_mutator.base.terminal import printable
from query_mutator.reports.cautions import cautions, evidence
from query_mutator.reports.comparison import (
    MINUTE,
    STEP,
    Comparison,
    GroupCell,
    Point,
    ratio_makes_sense,
    relative,
)
from query_mutator.reports.statistics import FEW_SEEDS
from query_mutator.runs.metrics import better_of, is_counted

FORMATS = ("table", "csv", "json", "markdown")
Rows = list[list[str]]


def rendered(comparison: Comparison, kind: str) -> str:
    """The comparison in one of `FORMATS`."""
    if kind == "json":
        return json.dumps(as_dict(comparison), indent=2, ensure_ascii=False) + "\n"
    if kind == "csv":
        return _csv(comparison)
    return _text(comparison, markdown=kind == "markdown")


def table(rows: Rows, *, markdown: bool) -> str:
    """Rows, the first being the head, as a table."""
    return as_markdown(rows) if markdown else layout(rows, rule=True)


def number(value: float | None) -> str:
    """Four significant digits, as people write them.

    >>> number(0.081234), number(12345.6), number(None), number(3.0)
    ('0.08123', '12,346', '–', '3')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Everything, as JSON holds it: what is not a finite number is null."""
    return {
        "baseline": comparison.runs[0].name,
        "last_common_step": comparison.last_step,
        "last_common_minute": comparison.last_minute,
        "rows": without_infinities(_records(comparison)),
        "groups": without_infinities(_group_records(comparison)),
        "thresholds": [
            {
                "metric": goal.tag,
                "value": goal.value,
                "better": goal.better,
                "run": name,
                "reached_value": point and point.value,
                "step": point and point.step,
                "minute": point and point.minute,
            }
            for (goal, name), point in comparison.reached.items()
        ],
        "warnings": cautions(comparison),
        "evidence": evidence(comparison),
    }


def _text(comparison: Comparison, *, markdown: bool) -> str:
    steps, minutes = f"{comparison.last_step:,}", f"{comparison.last_minute:.3g}"
    first = comparison.runs[0].name
    parts = [
        printable(
            f"Baseline: {first}. All runs have reached step {steps} and minute {minutes}: the "
            "columns with these compare like with like (means of the tenth before)."
        )
    ]
    for tag in comparison.tags:
        better = better_of(tag)
        way = f"{better} is better" if better else "neither way is better"
        parts.append(_heading(f"{tag} ({way})", markdown))
        parts.append(table(_run_rows(comparison, tag, steps, minutes), markdown=markdown))
        if comparison.several_seeds:
            parts.append(table(_group_rows(comparison, tag, steps, minutes), markdown=markdown))
    for goal in dict.fromkeys(goal for goal, _ in comparison.reached):
        parts.append(_heading(f"reached {goal}", markdown))
        rows = [["run", "step", "minute", "value"]]
        for run in comparison.runs:
            rows.append([run.name, *_place(comparison.reached[goal, run.name], value_last=True)])
        parts.append(table(rows, markdown=markdown))
    warnings = cautions(comparison)
    if warnings:
        mark = "- " if markdown else "warning: "
        parts.append("\n".join(mark + printable(line) for line in warnings))
    parts.append(printable(evidence(comparison)))
    return "\n\n".join(parts) + "\n"


def _heading(text: str, markdown: bool) -> str:
    return f"### {printable(text)}" if markdown else printable(text)


def _run_rows(comparison: Comparison, tag: str, steps: str, minutes: str) -> Rows:
    rows = [["run", "best", "at step", "minute", "last", f"step {steps}", "to first",
             f"minute {minutes}", "to first"]]  # fmt: skip
    if is_counted(tag):
        rows[0][1] = "total"
    cells = [comparison.cells[tag, run.name] for run in comparison.runs]
    at_step, at_minute = [cell.at_step for cell in cells], [cell.at_minute for cell in cells]
    for run, cell in zip(comparison.runs, cells, strict=True):
        rows.append(
            [
                run.name,
                *(_place(cell.best) if cell.total is None else (number(cell.total), "–", "–")),
                number(cell.last.value if cell.last else None),
                number(cell.at_step),
                relative(cell.at_step, at_step[0], _known(at_step)),
                number(cell.at_minute),
                relative(cell.at_minute, at_minute[0], _known(at_minute)),
            ]
        )
    return rows


def spread_heading(cells: Iterable[GroupCell | None]) -> str:
    """What the bounds of these cells are: few seeds have only a range."""
    few = {cell.few for cell in cells if cell is not None and cell.interval is not None}
    if len(few) > 1:
        return f"95 % interval (under {FEW_SEEDS} seeds: range)"
    return "range of seeds" if few == {True} else "95 % interval"


def _group_rows(comparison: Comparison, tag: str, steps: str, minutes: str) -> Rows:
    rows = [["group", "seeds"], *([group.name, str(group.seeds)] for group in comparison.groups)]
    for view, where in ((STEP, f"step {steps}"), (MINUTE, f"minute {minutes}")):
        cells = [comparison.group_cells.get((tag, g.name, view)) for g in comparison.groups]
        rows[0] += [f"IQM at {where}", spread_heading(cells), "P(better)"]
        for row, cell in zip(rows[1:], cells, strict=True):
            row += _group_columns(cell)
    return rows


def _group_columns(cell: GroupCell | None) -> list[str]:
    if cell is None:
        return ["–", "–", "–"]
    bounds = "–" if cell.interval is None else "[{}, {}]".format(*map(number, cell.interval))
    improvement = "–" if cell.improvement is None else f"{cell.improvement:.2f}"
    if cell.improvement_interval is not None:
        improvement += " [{:.2f}, {:.2f}]".format(*cell.improvement_interval)
    mean = number(cell.iqm) + (f" ({cell.missing})" if cell.missing else "")
    return [mean, bounds, improvement]


def _place(point: Point | None, *, value_last: bool = False) -> list[str]:
    if point is None:
        return ["–", "–", "–"] if not value_last else ["never", "–", "–"]
    value, place = number(point.value), [f"{point.step:,}", f"{point.minute:.2f}"]
    return [*place, value] if value_last else [value, *place]


def _records(comparison: Comparison) -> list[dict[str, Any]]:
    """One record for each metric of each run that has it."""
    group_of = {run.name: group.name for group in comparison.groups for run in group.runs}
    records = []
    for tag in comparison.tags:
        cells = {run.name: comparison.cells[tag, run.name] for run in comparison.runs}
        first = cells[comparison.runs[0].name]
        for run in comparison.runs:
            cell = cells[run.name]
            if not cell.points:
                continue
            record: dict[str, Any] = {"run": run.name, "group": group_of[run.name], "metric": tag}
            record |= {"better": better_of(tag), "points": cell.points}
            for name, point in (("best", cell.best), ("last", cell.last)):
                record[name] = point and point.value
                record[f"{name}_step"] = point and point.step
                record[f"{name}_minute"] = point and point.minute
            record["total"] = cell.total
            for name in ("at_step", "at_minute"):
                values = _known([getattr(other, name) for other in cells.values()])
                value, baseline = getattr(cell, name), getattr(first, name)
                both = value is not None and baseline is not None
                ratio = both and ratio_makes_sense(values)
                record[name] = value
                record[f"{name}_ratio"] = value / baseline if ratio else None
                record[f"{name}_difference"] = value - baseline if both else None
            records.append(record)
    return records


def _group_records(comparison: Comparison) -> list[dict[str, Any]]:
    records = []
    for (tag, name, view), cell in comparison.group_cells.items():
        bounds, improvement = cell.interval, cell.improvement_interval
        records.append(
            {
                "group": name,
                "metric": tag,
                "at": view,
                "seeds": cell.of,
                "seeds_with_value": cell.seeds,
                "iqm": cell.iqm,
                "interval": list(bounds) if bounds else None,
                "interval_is": spread_heading([cell]) if bounds else None,
                "probability_of_improvement": cell.improvement,
                "probability_interval": list(improvement) if improvement else None,
            }
        )
    return records


def _csv(comparison: Comparison) -> str:
    """One line for each metric of each run; goals add columns to the lines of their metric."""
    goals = list(dict.fromkeys(goal for goal, _ in comparison.reached))
    records = _records(comparison)
    for record in records:
        for goal in goals:
            limit = f"{'>=' if goal.better == 'higher' else '<='}{goal.value:.12g}"
            columns = [f"reached_{what}{limit}" for what in (STEP, MINUTE)]
            point = comparison.reached[goal, record["run"]]
            if goal.tag == record["metric"] and point is not None:
                record |= zip(columns, (point.step, point.minute), strict=True)
            for column in columns:  # of other metrics' goals, which may be the same number
                record.setdefault(column, None)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(records[0]) if records else ["run"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
