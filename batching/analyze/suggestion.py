"""Suggested edges, with what they gain over others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from batching.analyze.edges import DEFAULT_NUM_EDGES, Goal, suggest_edges
from batching.analyze.efficiency import BucketEfficiency
from batching.analyze.text import percent
from batching.core import BucketSpec

FIGURES = {
    Goal.WASTE: ("places that hold tokens", "efficiency"),
    Goal.BALANCE: ("samples in the fullest bucket", "largest_share"),
    Goal.MEMORY: ("attention memory that holds tokens", "attention_efficiency"),
}
"""What a goal is measured by: in words, and where `BucketEfficiency` has it."""


@dataclass(frozen=True)
class Suggestion:
    """The best edges for a goal, beside those in use."""

    goal: Goal
    suggested: BucketEfficiency
    in_use: BucketEfficiency

    @property
    def spec(self) -> BucketSpec:
        """The suggested buckets."""
        return self.suggested.spec

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "goal": self.goal.value,
            "edges": list(self.spec.edges),
            "overflow_max": self.spec.overflow_max,
            "suggested": self.suggested.to_dict(),
            "in_use": self.in_use.to_dict(),
        }

    def to_text(self) -> str:
        """What to set, what it gives and what the others gave."""
        what, figure = FIGURES[self.goal]
        before, after = (percent(getattr(one, figure)) for one in (self.in_use, self.suggested))
        return "\n".join(
            [
                f"best edges for {self.goal}: {edges_flag(self.spec)}",
                f"{what}: {after}, with {edges_flag(self.in_use.spec)}: {before}",
                "",
                self.suggested.to_text(),
            ]
        )


def edges_flag(spec: BucketSpec) -> str:
    """Edges as they are given on a command line.

    >>> edges_flag(BucketSpec((128, 256), 512))
    '128,256 (at most 512)'
    """
    return f"{','.join(map(str, spec.edges)) or 'none'} (at most {spec.overflow_max})"


def suggest(
    lengths: npt.ArrayLike,
    num_edges: int = DEFAULT_NUM_EDGES,
    goal: Goal | str = Goal.WASTE,
    *,
    in_use: BucketSpec | None = None,
    overflow_max: int | None = None,
    multiple_of: int = 1,
) -> Suggestion:
    """The best edges for a goal, compared with those in use or the default ones."""
    spec = suggest_edges(
        lengths, num_edges, goal, overflow_max=overflow_max, multiple_of=multiple_of
    )
    return Suggestion(
        Goal(goal),
        BucketEfficiency.of(lengths, spec),
        BucketEfficiency.of(lengths, in_use or BucketSpec.default()),
    )
