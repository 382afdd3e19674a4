"""What a transition log adds up to by one score, and by two of them side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from query_mutator.base.tables import layout
from query_mutator.environment.transition import Transition
from query_mutator.evaluation.scoring_again import STOP

LONGEST_WINDOW = 100
"""Updates whose mean return is taken for that at first, and for that at last."""


@dataclass
class Mean:
    """A mean that grows; None of nothing."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class LoggedFigures:
    """The mean score of the questions unchanged, of the returns and of each operator's gain."""

    unchanged: Mean = field(default_factory=Mean)
    returns: dict[int, Mean] = field(default_factory=lambda: defaultdict(Mean))
    """By update."""
    gains: dict[str, Mean] = field(default_factory=lambda: defaultdict(Mean))
    """By operator."""

    def add(self, step: Transition, *, opens: bool) -> None:
        """Adds one step; `opens` says that an episode begins with it."""
        if opens:
            self.unchanged.add(step.previous_score)
        if step.episode_return is not None:
            self.returns[step.update].add(step.episode_return)
        if not step.failed and step.operator != STOP:
            self.gains[step.operator].add(step.reward)

    def plain(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        means = [mean.value or 0.0 for _, mean in sorted(self.returns.items())]
        window = min(LONGEST_WINDOW, max(1, len(means) // 10))
        return {
            "score_unchanged": self.unchanged.value,
            "mean_return_first": _mean(means[:window]),
            "mean_return_last": _mean(means[-window:]),
            "gain_by_operator": {
                name: {"uses": mean.count, "gain": mean.value}
                for name, mean in sorted(self.gains.items())
            },
        }


def side_by_side(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The plain figures of one log by two scores, as a table for the terminal."""
    rows = [
        ("", "as logged", "rescored"),
        ("score unchanged", *(_shown(one["score_unchanged"], "") for one in (before, after))),
    ]
    for name, key in (("first", "mean_return_first"), ("last", "mean_return_last")):
        rows.append((f"mean return at {name}", _shown(before[key]), _shown(after[key])))
    gains, others = before["gain_by_operator"], after["gain_by_operator"]
    for name in sorted(gains, key=lambda name: -others[name]["gain"]):
        label = f"gain by {name} ({gains[name]['uses']})"
        rows.append((label, _shown(gains[name]["gain"]), _shown(others[name]["gain"])))
    return layout(rows, indent="  ")


def _shown(value: float | None, sign: str = "+") -> str:
    return "—" if value is None else f"{value:{sign}.3f}"


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
