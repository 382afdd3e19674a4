"""Which part of a score moved, in words: facts or wording."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
    """What to add to a sentence on the gain: which parts moved, and by how much.

    >>> gain = Difference(0.1, 0.05, 0.15, 0.02, 2.5, 100)
    >>> which_moved(gain, {"facts": Difference(0, -0.1, 0.1, 0.04, 2.5, 100), "wording": gain})
    ', mostly by wording: facts +0.000 [-0.100, +0.100], wording +0.100 [+0.050, +0.150]'
    """
    if not parts:
        return ""
    figures = parts_told(parts)
    if len(parts) == 1:
        return f": {figures}"
    ways = {name: _direction(moved) for name, moved in parts.items()}
    moving = [name for name, way in ways.items() if way]
    if not moving:
        return f"; neither {' nor '.join(parts)} moved for certain: {figures}"
    if _direction(gain) and all(ways[name] == _direction(gain) for name in moving):
        by = f"by {' and '.join(moving)}" if len(moving) > 1 else f"mostly by {moving[0]}"
        return f", {by}: {figures}"
    said = [f"{name} {'rose' if ways[name] > 0 else 'fell'}" for name in moving]
    said += [f"{name} not for certain" for name in parts if name not in moving]
    return f"; {', '.join(said)}: {figures}"


def _direction(moved: Difference) -> int:
    """1 for up, -1 for down, 0 where it is not certain."""
    if moved.groups < FEWEST_SHOWN:
        return 0
    return int(moved.above_0) - int(moved.below_0)
