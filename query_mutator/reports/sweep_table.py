"""The combinations of a sweep in one table: a line for each, what matters in columns."""

from __future__ import annotations

from query_mutator.base.tables import layout
from query_mutator.reports.cautions import cautions, evidence
from query_mutator.reports.comparison import MINUTE, STEP, Comparison, GroupCell
from query_mutator.reports.golden import Surface
from query_mutator.reports.grid import label
from query_mutator.reports.tables import number
from query_mutator.runs.tags import HELDOUT, LOSS, MEAN_RETURN, SCORES

SHORT = {HELDOUT: "held-out", MEAN_RETURN: "return"}


def summary_table(comparison: Comparison, found: Surface | None, *, by_minute: bool) -> str:
    """A line for each combination, then the warnings and what the seeds allow to conclude."""
    scores = [tag for tag in SCORES if tag in comparison.tags]
    columns = [(tag, STEP) for tag in scores]
    if by_minute:
        columns += [(tag, MINUTE) for tag in scores]
    steps, minutes = f"step {comparison.last_step:,}", f"min {comparison.last_minute:.3g}"
    head = ["combination", "seeds"]
    head += [f"{SHORT[tag]}, {steps if view == STEP else minutes}" for tag, view in columns]
    head += ["loss"] + (["steps/min"] if by_minute else [])
    rows = [head]
    golden = label(found.grid, found.golden) if found and found.golden else ""
    for group in comparison.groups:
        star = " ★" if group.name == golden else ""
        row = [group.name + star, str(group.seeds)]
        for tag, view in columns:
            row.append(_with_interval(comparison.group_cells.get((tag, group.name, view))))
        loss = comparison.group_cells.get((LOSS, group.name, STEP))
        row.append(number(loss.iqm if loss else None))
        if by_minute:
            row.append(_steps_per_minute(comparison, group.name))
        rows.append(row)
    parts = [layout(rows, rule=True)]
    if warnings := cautions(comparison):
        parts.append("\n".join(f"warning: {line}" for line in warnings))
    parts.append(evidence(comparison))
    return "\n\n".join(parts)


def _with_interval(cell: GroupCell | None) -> str:
    if cell is None:
        return "–"
    bounds = "" if cell.interval is None else " [{:+.3f}, {:+.3f}]".format(*cell.interval)
    missing = f" ({cell.missing})" if cell.missing else ""
    return f"{cell.iqm:+.3f}{bounds}{missing}"


def _steps_per_minute(comparison: Comparison, name: str) -> str:
    """Steps over the minutes that they took, measuring included: what a person waits for."""
    (group,) = (group for group in comparison.groups if group.name == name)
    paces = []
    for run in group.runs:
        curve = max(run.curves.values(), key=lambda curve: curve.minutes[-1])
        if curve.minutes[-1] > 0:
            paces.append(curve.steps[-1] / curve.minutes[-1])
    return f"{sum(paces) / len(paces):,.0f}" if paces else "–"
