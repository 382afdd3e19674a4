"""From values to places on a picture: scales, round ticks, labels that do not overlap."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` onto places from `start` to `end`.

    >>> Scale(0, 10, 100, 200)(5)
    150.0
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)


def round_ticks(low: float, high: float, about: int) -> list[float]:
    """About so many round numbers from `low` to `high`.

    >>> round_ticks(-0.03, 0.21, 5)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    rough = max(high - low, 1e-9) / max(1, about)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) + 0.0 for number in range(first, last + 1)]


def tick_label(ticks: Sequence[float], *, signs: bool = False) -> Callable[[float], str]:
    """Writes ticks with as many decimals as tell them apart.

    >>> [tick_label([0.0, 0.25])(tick) for tick in (0.0, 0.25)], tick_label([0, 2000])(2000)
    (['0', '0.25'], '2,000')
    """
    steps = [b - a for a, b in itertools.pairwise(ticks)] or [1.0]
    places = next((p for p in range(7) if abs(round(steps[0], p) - steps[0]) < 1e-9), 6)

    def write(tick: float) -> str:
        if tick == 0:
            return "0"
        written = f"{tick:+,.{places}f}" if signs else f"{tick:,.{places}f}"
        return written.replace("-", "−")

    return write


def signed(value: float, places: int = 3) -> str:
    """A difference with its sign, a minus as wide as a plus.

    >>> signed(0.25), signed(-0.25, 1), signed(0.0001)
    ('+0.250', '−0.2', '0.000')
    """
    written = f"{value:+.{places}f}"
    if not float(written):
        return written[1:]
    return written.replace("-", "−")


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places moved as little as keeps them `gap` apart, between `low` and `high`.

    >>> spread([50, 52, 90], 10, 0, 100)
    [46.0, 56.0, 90.0]
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    blocks: list[tuple[list[int], float]] = []  # places that touch, and where their middle is
    for index in order:
        members, middle = [index], _within(places[index], 1, gap, low, high)
        while blocks and _reach(*blocks[-1], gap)[1] + gap > _reach(members, middle, gap)[0]:
            members = blocks.pop()[0] + members
            wanted = sum(places[member] for member in members) / len(members)
            middle = _within(wanted, len(members), gap, low, high)
        blocks.append((members, middle))
    moved = [0.0] * len(places)
    for members, middle in blocks:
        first = _reach(members, middle, gap)[0]
        for number, member in enumerate(members):
            moved[member] = first + number * gap
    return moved


def _reach(members: Sequence[int], middle: float, gap: float) -> tuple[float, float]:
    half = (len(members) - 1) / 2 * gap
    return middle - half, middle + half


def _within(middle: float, count: int, gap: float, low: float, high: float) -> float:
    half = (count - 1) / 2 * gap
    return float(max(low + half, min(high - half, middle)))
