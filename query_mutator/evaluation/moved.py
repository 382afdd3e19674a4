"""Which part of a score moved, in words: facts or wording."""

from __future__ import annotations

import math
from collections.abc import Mapping

from query_mutator.evaluation.apart import FACTS
from query_mutator.evaluation.statistics import FEWEST_SHOWN, Difference


def with_interval(difference: Difference) -> str:
    """The mean and, where it has ends that tell something, the interval in brackets.

    >>> with_interval(Difference(0.1, 0.05, 0.15, 0.02, 2.5, 100))
    '+0.100 [+0.050, +0.150]'
    """
    if not math.isfinite(difference.low) or difference.groups < FEWEST_SHOWN:
        return f"{difference.mean:+.3f}"
    return f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def parts_told(parts: Mapping[str, Difference]) -> str:
    """The change in each part.

    >>> parts_told({"facts": Difference(0.1, 0.05, 0.15, 0.02, 2.5, 100)})
    'facts +0.100 [+0.050, +0.150]'
    """
    return ", ".join(f"{name} {with_interval(moved)}" for name, moved in parts.items())


def which_moved(gain: Difference, parts: Mapping[str, Difference]) -> str:
    """How a sentence on the gain goes on, up to its full stop: which parts moved, by how much.

    >>> gain = Difference(0.1, 0.05, 0.15, 0.02, 2.5, 100)
    >>> which_moved(gain, {"facts": Difference(0, -0.1, 0.1, 0.04, 2.5, 100), "wording": gain})
    ', shown for wording alone: facts +0.000 [-0.100, +0.100], wording +0.100 [+0.050, +0.150]'
    """
    if not parts:
        return ""
    ways = {name: _direction(moved) for name, moved in parts.items()}
    moving = [name for name, way in ways.items() if way]
    if moving and _direction(gain) and all(ways[name] == _direction(gain) for name in moving):
        told = f"by {' and '.join(moving)}"
        if len(moving) < len(parts):
            told = f"shown for {' and '.join(moving)} alone"
        return f", {told}: {parts_told(parts)}"
    if not moving and len(parts) > 1:
        return f". Neither {' nor '.join(parts)} is shown to have moved: {parts_told(parts)}"
    said = ", ".join(_moved(name, way) for name, way in ways.items())
    return f". {said[:1].upper()}{said[1:]}: {parts_told(parts)}"


def _moved(name: str, way: int) -> str:
    if way:
        return f"{name} {'rose' if way > 0 else 'fell'}"
    return f"{name} {'are' if name == FACTS else 'is'} not shown to have moved"


def _direction(moved: Difference) -> int:
    """1 for up, -1 for down, 0 where it is not certain."""
    if moved.groups < FEWEST_SHOWN:
        return 0
    return int(moved.above_0) - int(moved.below_0)
