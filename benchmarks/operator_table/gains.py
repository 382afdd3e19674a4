"""What each operator of a table gains, in words and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.operator_table.rows import Row, Rows
from query_mutator.base.tables import layout
from query_mutator.base.terminal import counted
from query_mutator.evaluation.apart import FACTS, part
from query_mutator.evaluation.measuring import UNCHANGED, Tried
from query_mutator.evaluation.moved import with_interval
from query_mutator.evaluation.statistics import Difference, paired_differences

GROUPS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "clear": lambda row: row.is_clear,
    "messy": lambda row: not row.is_clear,
}
MEASURES: dict[str, Callable[[Tried], float]] = {
    "score": lambda tried: tried.score,
    FACTS: lambda tried: part(tried, FACTS),
}


def as_text(table: Rows) -> str:
    """The gains by operator, on clear and on messy questions, facts apart; the best single one."""
    if not table.rows:
        return "no row yet"
    parts = [_head(table)]
    parts += [_gains_as_text(table, name) for name in MEASURES]
    return "\n\n".join([*parts, "\n".join(_best_single(table))])


def gains_of(
    rows: Sequence[Row], operators: Sequence[str], measure: Callable[[Tried], float]
) -> dict[str, Difference]:
    """What each operator gains in a measure over the question unchanged, with its interval.

    Only questions that have the measure count; without one, nothing is found.
    """
    ways = [UNCHANGED, *operators]
    values = np.array([[measure(row.ways[name]) for name in ways] for row in rows])
    known = ~np.isnan(values.reshape(len(rows), len(ways))).any(1)
    if not operators or not known.any():
        return {}
    gains = values[known, 1:] - values[known, :1]
    groups = [row.meaning for row, has in zip(rows, known, strict=True) if has]
    family = {name: gains[:, column] for column, name in enumerate(operators)}
    return paired_differences(family, groups=groups)


def _head(table: Rows) -> str:
    clear = sum(row.is_clear for row in table.rows)
    train = sum(row.split == "train" for row in table.rows)
    return (
        f"{counted(len(table.rows), 'question')}: {clear:,} clear, {len(table.rows) - clear:,} "
        f"messy; {train:,} to train on, {len(table.rows) - train:,} held out. Gains over the "
        "question unchanged; in brackets 95 %, for all operators of a column together"
    )


def _gains_as_text(table: Rows, name: str) -> str:
    measure, names = MEASURES[name], table.operators
    groups = {group: list(filter(has, table.rows)) for group, has in GROUPS.items()}
    found = {group: gains_of(rows, names, measure) for group, rows in groups.items()}
    lines = [[name, *groups, "left alone"]]
    unchanged = [_mean([measure(row.ways[UNCHANGED]) for row in rows]) for rows in groups.values()]
    lines.append([UNCHANGED, *unchanged, ""])
    for operator in names:
        cells = [
            with_interval(of_group[operator]) if of_group else "-" for of_group in found.values()
        ]
        alone = np.mean([row.ways[operator].prompt == row.question for row in table.rows])
        lines.append([operator, *cells, f"{alone:.2f}"])
    return layout(lines)


def _mean(values: Sequence[float]) -> str:
    known = [value for value in values if not np.isnan(value)]
    return f"{np.mean(known):.3f}" if known else "-"


def _best_single(table: Rows) -> list[str]:
    """The operator with the best mean, and what the one chosen in training does elsewhere."""
    if not table.operators:
        return []
    lines = [f"best single operator: {_told(table.rows, table, best_of(table.gains()))}"]
    train, heldout = table.of("train"), table.of("heldout")
    if train.rows and heldout.rows:
        best = best_of(train.gains())
        lines.append(f"chosen on the training questions, on held-out ones: "
                     f"{_told(heldout.rows, table, best)}")  # fmt: skip
    return lines


def best_of(gains: npt.NDArray[np.float64]) -> int:
    """The number of the operator with the best mean."""
    return int(gains.mean(0).argmax())


def _told(rows: Sequence[Row], table: Rows, number: int) -> str:
    name = table.operators[number]
    gained = gains_of(rows, [name], MEASURES["score"])[name]
    facts = gains_of(rows, [name], MEASURES[FACTS])
    apart = f", {FACTS} {with_interval(facts[name])}" if facts else ""
    worse = "; to leave the question alone is better" if gained.mean < 0 else ""
    return f"{name}, {with_interval(gained)}{apart}{worse}"
