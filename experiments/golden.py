"""Where the golden middle of a grid lies: good by step and good by minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.comparison import MINUTE, STEP, Comparison, GroupCell
from experiments.grid import Dimension, combinations, label
from training.metrics import SCORES

BOTH = "both"
Combination = tuple[str, ...]


@dataclass(frozen=True)
class View:
    """One way to look at the grid: a number for each combination that has been run."""

    name: str
    measured: str
    """What the numbers are."""
    values: dict[Combination, float]

    @property
    def title(self) -> str:
        return f"score per {self.name}" if self.name != BOTH else "both"

    def ordered(self) -> list[Combination]:
        """The combinations, best first."""
        return sorted(self.values, key=lambda combination: -self.values[combination])


@dataclass(frozen=True)
class Surface:
    """The scores of a grid, its golden middle, and what cannot be told from it."""

    grid: list[Dimension]
    views: list[View]
    golden: Combination
    alike: list[Combination]
    reason: str


def surface(
    comparison: Comparison, grid: Sequence[Dimension], *, by_minute: bool
) -> Surface | None:
    """The grid seen by step, by minute and by both; None where no run has a score.

    Both is the product of the two scores, each scaled from 0 for the worst combination to 1 for
    the best: a combination must be good at both to come out high, and being best at one cannot
    pay for being worst at the other. Ranks would blow up differences that mean nothing.
    """
    views, cells = [], {}
    for view in (STEP, MINUTE) if by_minute else (STEP,):
        found = _score_cells(comparison, grid, view)
        if found is None:
            return None
        tag, of_view = found
        cells[view] = of_view
        limit = (
            f"step {comparison.last_step:,}"
            if view == STEP
            else f"minute {comparison.last_minute:.3g}"
        )
        values = {combination: cell.iqm for combination, cell in of_view.items()}
        views.append(View(view, f"{tag} at {limit}", values))
    if by_minute:
        scaled = [_scaled(view.values) for view in views]
        common = [c for c in views[0].values if c in views[1].values]
        values = {c: scaled[0][c] * scaled[1][c] for c in common}
        views.append(View(BOTH, "product of the two, each from 0 to 1", values))
    golden = views[-1].ordered()[0]
    alike = [
        combination
        for combination in views[-1].ordered()[1:]
        if all(_overlap(of_view[golden], of_view[combination]) for of_view in cells.values())
    ]
    reason = _reason(list(grid), views, golden, alike)
    return Surface(list(grid), views, golden, alike, reason)


def _score_cells(
    comparison: Comparison, grid: Sequence[Dimension], view: str
) -> tuple[str, dict[Combination, GroupCell]] | None:
    """The score that most seeds have there, and its cells by combination.

    By minute, runs of a slow combination may have measured nothing yet.
    """
    by_label = {label(grid, combination): combination for combination in combinations(grid)}
    best: tuple[str, dict[Combination, GroupCell]] | None = None
    for tag in SCORES:
        cells = {
            by_label[group.name]: cell
            for group in comparison.groups
            if (cell := comparison.group_cells.get((tag, group.name, view))) is not None
        }
        if cells and (best is None or _seeds(cells) > _seeds(best[1])):
            best = tag, cells
    return best


def _seeds(cells: dict[Combination, GroupCell]) -> int:
    return sum(cell.runs for cell in cells.values())


def _scaled(values: dict[Combination, float]) -> dict[Combination, float]:
    low, high = min(values.values()), max(values.values())
    spread = high - low
    return {c: (value - low) / spread if spread else 1.0 for c, value in values.items()}


def _overlap(left: GroupCell, right: GroupCell) -> bool:
    """Whether two groups cannot be told apart: their intervals meet, or there are none."""
    if left.interval is None or right.interval is None:
        return True
    return left.interval[0] <= right.interval[1] and right.interval[0] <= left.interval[1]


def _reason(
    grid: list[Dimension], views: list[View], golden: Combination, alike: list[Combination]
) -> str:
    told = []
    for view in views:
        if view.name == BOTH:
            continue
        order = view.ordered()
        place = order.index(golden) + 1
        best, worst = order[0], order[-1]
        own = f"{view.values[golden]:+.3f} per {view.name}"
        standing = (
            "the best"
            if place == 1
            else f"number {place} of {len(order)}; best {view.values[best]:+.3f} at "
            f"{label(grid, best)}"
        )
        told.append(f"{own} ({standing}; worst {view.values[worst]:+.3f} at {label(grid, worst)})")
    text = f"golden middle: {label(grid, golden)}, with a score of {' and '.join(told)}"
    if not alike:
        return f"{text}."
    shown = ", ".join(label(grid, c) for c in alike[:3])
    more = f" and {len(alike) - 3} more" if len(alike) > 3 else ""
    return f"{text}. The seeds cannot tell it from {shown}{more}."
