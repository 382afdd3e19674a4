"""Where the golden middle of a grid lies: good by step and good by minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from query_mutator.reports.comparison import MINUTE, STEP, Comparison, GroupCell
from query_mutator.reports.grid import Dimension, combinations, label
from query_mutator.runs.tags import SCORES

BOTH = "both"
SHOWN = 3
CLOSE = 1e-9
"""Values that differ by less are equal: what is left of them is rounding."""
Combination = tuple[str, ...]


@dataclass(frozen=True)
class View:
    """One way to look at the grid: a number for each combination that has been run."""

    name: str
    measured: str
    """What the numbers are."""
    at: str
    """The step or minute that they are taken at."""
    values: dict[Combination, float]

    @property
    def title(self) -> str:
        return f"score by {self.name}" if self.name != BOTH else "both"

    def best(self) -> list[Combination]:
        """The combination with the highest value, and those that equal it."""
        highest = max(self.values.values())
        return [c for c, value in self.values.items() if highest - value <= CLOSE]

    def place(self, combination: Combination) -> int:
        """1 and the number of combinations that are better."""
        own = self.values[combination]
        return 1 + sum(value - own > CLOSE for value in self.values.values())


@dataclass(frozen=True)
class Surface:
    """The scores of a grid, its golden middle, and what cannot be told from it."""

    grid: list[Dimension]
    views: list[View]
    golden: Combination | None
    """None where no combination is good at both, or several are equally so."""
    alike: list[Combination]
    """Those that the seeds cannot tell from the golden middle."""

    @property
    def reason(self) -> str:
        """Which combination it is, or why it is none, in a sentence or two."""
        return _no_middle(self) if self.golden is None else _reason(self, self.golden)

    @property
    def all_alike(self) -> bool:
        """Whether the seeds cannot tell the golden middle from any other."""
        return len(self.alike) == len(self.views[-1].values) - 1


def surface(
    comparison: Comparison, grid: Sequence[Dimension], *, by_minute: bool
) -> Surface | None:
    """The grid seen by step, by minute and by both; None where no run has a score.

    Both is the product of the two scores, each scaled from 0 for the worst combination to 1 for
    the best: a combination must be good at both to come out high, and being best at one cannot
    pay for being worst at the other. Ranks would blow up differences that mean nothing.
    """
    places = {STEP: f"step {comparison.last_step:,}"}
    if by_minute:
        places[MINUTE] = f"minute {comparison.last_minute:.3g}"
    views, cells = [], []
    for view, at in places.items():
        tag, of_view = _score_cells(comparison, grid, view)
        if of_view:
            cells.append(of_view)
            values = {combination: cell.iqm for combination, cell in of_view.items()}
            views.append(View(view, f"{tag} at {at}", at, values))
    if not views:
        return None
    if len(views) > 1:
        scaled = [_scaled(view.values) for view in views]
        values = {c: own * scaled[1][c] for c, own in scaled[0].items() if c in scaled[1]}
        if not values:
            return Surface(list(grid), views, None, [])
        views.append(View(BOTH, "product of the two, each from 0 to 1", "", values))
    last = views[-1]
    golden, *others = sorted(last.values, key=lambda c: -last.values[c])
    if len(last.best()) > 1 or (last.name == BOTH and last.values[golden] <= CLOSE):
        return Surface(list(grid), views, None, [])
    alike = [c for c in others if all(_overlap(each[golden], each[c]) for each in cells)]
    return Surface(list(grid), views, golden, alike)


def _score_cells(
    comparison: Comparison, grid: Sequence[Dimension], view: str
) -> tuple[str, dict[Combination, GroupCell]]:
    """The score that most seeds have there, and its cells by combination.

    By minute, runs of a slow combination may have measured nothing yet: a combination counts only
    with all its seeds, as the mean of the fast ones would flatter it.
    """
    by_label = {label(grid, combination): combination for combination in combinations(grid)}
    found = []
    for tag in SCORES:
        cells = {
            by_label[group.name]: cell
            for group in comparison.groups
            if (cell := comparison.group_cells.get((tag, group.name, view))) is not None
            and not cell.missing
        }
        found.append((tag, cells))
    return max(found, key=lambda one: sum(cell.seeds for cell in one[1].values()))


def _scaled(values: dict[Combination, float]) -> dict[Combination, float]:
    low, high = min(values.values()), max(values.values())
    spread = high - low
    return {c: (value - low) / spread if spread else 1.0 for c, value in values.items()}


def _overlap(left: GroupCell, right: GroupCell) -> bool:
    """Whether two groups cannot be told apart: their intervals meet, or they have only ranges."""
    if left.few or right.few or left.interval is None or right.interval is None:
        return True
    return left.interval[0] <= right.interval[1] and right.interval[0] <= left.interval[1]


def _no_middle(found: Surface) -> str:
    best = [
        f"{_listed(found.grid, view.best())} by {view.name} ({_value(view, view.best()[0])})"
        for view in found.views
        if view.name != BOTH
    ]
    return f"no golden middle: the best is {', '.join(best)}."


def _reason(found: Surface, golden: Combination) -> str:
    standings = []
    for view in found.views:
        if view.name == BOTH:
            standings.append(f"both {view.values[golden]:.2f}")
            continue
        place, best = view.place(golden), view.best()
        worst = min(view.values, key=lambda c: view.values[c])
        standing = "the best" if place == 1 else f"number {place} of {len(view.values)}; best "
        if place > 1:
            standing += f"{view.values[best[0]]:+.3f} with {_listed(found.grid, best)}"
        if worst != golden:
            standing += f"; worst {view.values[worst]:+.3f} with {label(found.grid, worst)}"
        standings.append(f"{_value(view, golden)} ({standing})")
    text = f"golden middle: {label(found.grid, golden)}, with {', '.join(standings)}."
    if not found.alike:
        return text
    if found.all_alike and len(found.alike) > 1:
        return f"{text} The seeds cannot tell it from any of the others for certain."
    return f"{text} The seeds cannot tell it from {_listed(found.grid, found.alike)}."


def _value(view: View, combination: Combination) -> str:
    return f"{view.values[combination]:+.3f} at {view.at}"


def _listed(grid: Sequence[Dimension], those: Sequence[Combination]) -> str:
    more = len(those) - SHOWN
    return ", ".join(label(grid, c) for c in those[:SHOWN]) + (
        f" and {more} more" if more > 0 else ""
    )
