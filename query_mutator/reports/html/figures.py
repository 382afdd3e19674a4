"""What is drawn, apart from how: the page, its data tables and the PNGs are made from these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.reports.html.scales import signed

Numbers = npt.NDArray[np.float64]
Rows = list[tuple[str, ...]]

MOST_COLOURS = 8
OTHERS = "others"
ALL = None
"""In place of the name of an operator or category: all of them."""
Name = str | None
FEWEST_SHOWN = 5
"""Pairs from which on an interval is shown, as in an evaluation; and uses from which on a cell of
a heat map has its full colour.
"""
SHADES = 5
FAINT = 1


@dataclass(frozen=True)
class Line:
    """One curve; with `low` and `high` it has a band around it."""

    name: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    sparse: bool = False
    """Few points, each of which is marked and joined by dashes."""
    each: Sequence[tuple[Numbers, Numbers]] = ()
    """The curves that this one is the mean of."""

    def interval(self, place: int) -> tuple[float, float] | None:
        """The ends of the band at a point; None where it has none."""
        if self.low is None or self.high is None:
            return None
        ends = float(self.low[place]), float(self.high[place])
        return ends if all(map(math.isfinite, ends)) else None


@dataclass(frozen=True)
class Curves:
    """Lines over the steps of training."""

    key: str
    says: str
    """What one sees, in a sentence."""
    y_label: str
    lines: Sequence[Line]
    zero: str
    """What a value of 0 stands for."""
    x_label: str = "environment steps"
    left_out: str = ""
    """Which lines there are no colours for, in a sentence."""

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value shown; wide bands are cut, not to flatten the lines."""
        drawn = [y for line in self.lines for y in (line.y, *(each for _, each in line.each))]
        middle = np.concatenate([[0.0], *drawn])
        low, high = middle.min(), middle.max()
        most = ((high - low) or 0.1) / 2
        bands = [end for line in self.lines for end in (line.low, line.high) if end is not None]
        ends = np.concatenate([middle, *bands])
        shown = np.clip(ends[np.isfinite(ends)], low - most, high + most)
        room = 0.06 * (np.ptp(shown) or 1.0)
        return float(shown.min() - room), float(shown.max() + room)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        """The head and the rows of the figures behind the picture."""
        rows: Rows = []
        for line in self.lines:
            for place in _some(len(line.x)):
                ends = line.interval(place)
                interval = f"{signed(ends[0])} to {signed(ends[1])}" if ends else ""
                steps = f"{line.x[place]:,.0f}"
                rows.append((line.name, steps, signed(line.y[place]), interval))
        return ("curve", self.x_label, "value", "95 % interval"), rows


@dataclass(frozen=True)
class Stack:
    """Shares of a whole over the steps of training."""

    key: str
    says: str
    y_label: str
    x: Numbers
    layers: Sequence[tuple[str, Numbers]]
    """From the bottom up; they add up to 1 at every step."""
    x_label: str = "environment steps"

    def table(self) -> tuple[tuple[str, ...], Rows]:
        """The head and the rows of the figures behind the picture."""
        rows: Rows = [
            (f"{self.x[place]:,.0f}", *(f"{values[place]:.1%}" for _, values in self.layers))
            for place in _some(len(self.x))
        ]
        return (self.x_label, *(name for name, _ in self.layers)), rows


@dataclass(frozen=True)
class Distribution:
    """Two distributions over the same bins."""

    key: str
    says: str
    y_label: str
    x_label: str
    edges: Numbers
    before: Numbers
    after: Numbers
    """Shares of each bin."""
    names: tuple[str, str] = ("before", "after")

    def table(self) -> tuple[tuple[str, ...], Rows]:
        """The head and the rows of the figures behind the picture."""
        rows: Rows = [
            (f"{low:.2f} to {high:.2f}".replace("-", "−"), f"{before:.1%}", f"{after:.1%}")
            for low, high, before, after in zip(
                self.edges[:-1], self.edges[1:], self.before, self.after, strict=True
            )
        ]
        return (self.x_label, *self.names), rows


@dataclass(frozen=True)
class Cell:
    """What an operator did to the questions of a category."""

    count: int
    gain: float
    to_right: int
    to_wrong: int

    @property
    def few(self) -> bool:
        """Whether it was used too little to say much."""
        return self.count < FEWEST_SHOWN

    @property
    def flips(self) -> str:
        """The shares of answers that became right and wrong."""
        return f"▲{self.to_right / self.count:.0%} ▼{self.to_wrong / self.count:.0%}"


@dataclass(frozen=True)
class HeatMap:
    """The gain of every operator in every category."""

    key: str
    says: str
    operators: Sequence[str]
    categories: Sequence[str]
    cells: dict[tuple[Name, Name], Cell]
    """By operator and category, either of which may be `ALL`."""

    @cached_property
    def deepest(self) -> float:
        """The gain or loss that has the deepest shade."""
        return max([0.05, *(abs(cell.gain) for cell in self.cells.values() if not cell.few)])

    def shade(self, cell: Cell) -> int:
        """How deep a cell is coloured, below 0 where the operator hurts."""
        level = min(SHADES, math.ceil(abs(cell.gain) / self.deepest * SHADES - 0.5))
        level = min(level, FAINT) if cell.few else level
        return level if cell.gain > 0 else -level


@dataclass(frozen=True)
class Interval:
    """A difference with its interval; the ends are None where too little is known."""

    name: str
    mean: float
    low: float | None
    high: float | None
    about: tuple[str, ...] = ()
    """Further cells of its row."""

    @property
    def certain(self) -> str:
        """Whether the difference is certainly for the `better` or `worse`, or `unsure`."""
        if self.low is None or self.high is None:
            return "unsure"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "unsure"


@dataclass(frozen=True)
class Forest:
    """Differences with their intervals, one below the other."""

    key: str
    says: str
    headings: tuple[str, ...]
    """Over the name and what is in `about`."""
    rows: Sequence[Interval]

    @property
    def range(self) -> tuple[float, float]:
        """From where to where the axis goes, 0 within it."""
        ends = [end for row in self.rows for end in (row.low, row.high) if end is not None]
        # A few questions in a category say little about their spread: they must not widen the axis.
        ends = [end for end in ends if abs(end) <= 1]
        ends += [row.mean for row in self.rows]
        low, high = min(0.0, *ends), max(0.0, *ends)
        room = 0.08 * max(high - low, 0.1)
        return low - room, high + room


Figure = Curves | Stack | Distribution | HeatMap | Forest


def stacked(
    key: str, says: str, y_label: str, x: Numbers, shares: dict[str, Numbers], **more: Any
) -> Stack:
    """A stack of the largest layers, the largest at the bottom, and the rest as one."""
    names = sorted(shares, key=lambda name: -float(shares[name].sum()))
    few = names if len(names) <= MOST_COLOURS else names[: MOST_COLOURS - 1]
    layers = [(name, shares[name]) for name in few]
    if rest := [shares[name] for name in names[len(few) :]]:
        layers.append((f"{len(rest)} {OTHERS}", np.sum(rest, axis=0)))
    return Stack(key, says, y_label, x, layers, **more)


def _some(count: int, most: int = 40) -> list[int]:
    """Places spread evenly, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})
