"""What a run adds up to, as its checkpoint and its summary hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import NonNegativeInt

from query_mutator.models.client import CallCounts

LONGEST_WINDOW = 100
"""Updates whose mean return is kept, for that at last."""
COUNTED = ("model_calls", "failed_calls", "cache_hits", "attempts")


@dataclass
class RunCounts:
    """What the run added up to so far, interruptions included."""

    update: NonNegativeInt = 0
    env_steps: NonNegativeInt = 0
    trained_transitions: NonNegativeInt = 0
    masked_transitions: NonNegativeInt = 0
    refused_rewrites: NonNegativeInt = 0
    dropped_rewrites: NonNegativeInt = 0
    """Those whose answer was not kept."""
    wall_time_s: float = 0.0
    collect_s: float = 0.0
    learn_s: float = 0.0
    calls: dict[str, NonNegativeInt] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    failures_by_kind: dict[str, NonNegativeInt] = field(default_factory=dict)
    rollouts_collected_again: NonNegativeInt = 0
    failures_to_log: dict[str, NonNegativeInt] = field(default_factory=dict)
    """What has gone wrong since the last point of the curves, by their names."""
    transitions_bytes: NonNegativeInt = 0
    returns_first: float | None = None
    """The mean return of the first tenth of the updates, at most `LONGEST_WINDOW`."""
    updates_first: NonNegativeInt = 0
    """How many updates that is the mean of."""
    returns_last: list[float] = field(default_factory=list)
    """The mean returns of as many updates, the last ones."""
    heldout_gain: float | None = None
    heldout_update: NonNegativeInt = 0
    """The update after which that was measured."""

    def count_calls(self, made: CallCounts, before: RunCounts) -> None:
        """Adds the calls that this process made to those from `before` it was resumed."""
        self.calls = {name: before.calls[name] + getattr(made, name) for name in COUNTED}
        failures = Counter(before.failures_by_kind) + made.failures_by_kind
        self.failures_by_kind = dict(sorted(failures.items()))

    def note_failures(self, counts: Mapping[str, int]) -> None:
        """Adds what went wrong in a rollout to what the next point of the curves will tell."""
        for tag, many in counts.items():
            self.failures_to_log[tag] = self.failures_to_log.get(tag, 0) + many

    def take_failures(self) -> dict[str, int]:
        """What went wrong since this was last asked for: points that add up to the whole."""
        taken, self.failures_to_log = self.failures_to_log, {}
        return taken

    def note_return(self, mean: float, updates: int) -> None:
        """Takes in the mean return of this update, one of so many in all."""
        window = min(LONGEST_WINDOW, max(1, updates // 10))
        if self.update <= window:
            self.updates_first += 1
            before = self.returns_first or 0.0
            self.returns_first = before + (mean - before) / self.updates_first
        self.returns_last = [*self.returns_last, mean][-window:]

    def summary(self) -> dict[str, Any]:
        """What summary.json holds."""
        return {
            "env_steps": self.env_steps,
            "updates": self.update,
            **self.calls,
            "failures_by_kind": self.failures_by_kind,
            "rollouts_collected_again": self.rollouts_collected_again,
            "trained_transitions": self.trained_transitions,
            "masked_transitions": self.masked_transitions,
            "refused_rewrites": self.refused_rewrites,
            "dropped_rewrites": self.dropped_rewrites,
            "wall_time_s": round(self.wall_time_s, 3),
            "collect_s": round(self.collect_s, 3),
            "learn_s": round(self.learn_s, 3),
            "mean_return_first": self.returns_first,
            "mean_return_last": mean_or_none(self.returns_last),
            "heldout_gain": self.heldout_gain,
        }


def mean_or_none(values: Sequence[float]) -> float | None:
    """The mean; None where there is nothing to take it of."""
    return float(np.mean(values)) if values else None
