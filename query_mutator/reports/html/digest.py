"""What a transition log adds up to, read once and kept small however long the log is."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from query_mutator.environment.transition import Transition
from query_mutator.reports.html.figures import ALL, Cell, Name, Numbers
from query_mutator.runs.transitions import read_transitions

RIGHT = 0.5
"""An answer counts as right from this score on."""
EXAMPLES = 4
STOP = "stop"
LEAVES_ALONE = "leaves it alone"
MOST_POINTS = 60
_KEPT = 64
_LONGEST_KEY = 200
_LONGEST_TEXT = 20_000
_LARGEST = 1e9
"""No figure of a summary is larger."""


@dataclass
class UpdateDigest:
    """The episodes and the actions of one update."""

    steps: int = 0
    episodes: int = 0
    returns: float = 0.0
    squared_returns: float = 0.0
    operators: Counter[str] = field(default_factory=Counter)

    def add(self, other: UpdateDigest) -> None:
        self.steps += other.steps
        self.episodes += other.episodes
        self.returns += other.returns
        self.squared_returns += other.squared_returns
        self.operators.update(other.operators)

    @property
    def mean(self) -> float:
        return self.returns / self.episodes

    @property
    def half_interval(self) -> float:
        """From the mean return to an end of its 95 % interval; NaN for fewer than two episodes."""
        from scipy.special import stdtrit

        n = self.episodes
        if n < 2:
            return math.nan
        variance = max(0.0, self.squared_returns - n * self.mean**2) / (n - 1)
        return float(stdtrit(n - 1, 0.975)) * math.sqrt(variance / n)


@dataclass(frozen=True)
class Example:
    """One rewrite with the answers before and after it."""

    operator: str
    category: str
    query: str
    rewritten_query: str
    previous_answer: str
    answer: str
    previous_score: float
    score: float
    reward: float


@dataclass
class Digest:
    """A run's transitions, added up."""

    updates: dict[int, UpdateDigest] = field(default_factory=lambda: defaultdict(UpdateDigest))
    cells: dict[tuple[Name, Name], list[float]] = field(default_factory=dict)
    """Count, sum of rewards, answers that became right and wrong, by operator and category."""
    before: array[float] = field(default_factory=lambda: array("d"))
    """The score of the question unchanged, of each episode that ended."""
    after: array[float] = field(default_factory=lambda: array("d"))
    best: dict[str, Example] = field(default_factory=dict)
    worst: dict[str, Example] = field(default_factory=dict)
    transitions: int = 0
    failed: int = 0

    def joined(self, most: int = MOST_POINTS) -> int:
        """How many updates make one of the points that are at most so many."""
        return max(1, math.ceil(len(self.updates) / most))

    def points(self, most: int = MOST_POINTS) -> list[tuple[int, UpdateDigest]]:
        """The steps done at the end of each update, with it; long runs have updates joined."""
        ordered = [self.updates[number] for number in sorted(self.updates)]
        together = self.joined(most)
        points, steps = [], 0
        for start in range(0, len(ordered), together):
            joined = UpdateDigest()
            for update in ordered[start : start + together]:
                joined.add(update)
            steps += joined.steps
            points.append((steps, joined))
        return points

    def cell(self, operator: Name, category: Name) -> Cell | None:
        """What an operator did to a category; None where it was never used there."""
        found = self.cells.get((operator, category))
        if not found:
            return None
        count, rewards, to_right, to_wrong = found
        return Cell(int(count), rewards / count, int(to_right), int(to_wrong))

    def names(self, place: int) -> list[str]:
        """The operators (0) or categories (1) there are, the most used first."""
        used: Counter[str] = Counter()
        for key, (count, *_) in self.cells.items():
            if (known := key[place]) is not ALL and key[1 - place] is ALL:
                used[known] += int(count)
        return [name for name, _ in used.most_common()]

    def tenths(self) -> tuple[UpdateDigest, UpdateDigest]:
        """The first and the last tenth of the updates."""
        points = self.points(10)
        return points[0][1], points[-1][1]

    def last_quarter(self) -> tuple[Numbers, Numbers]:
        """Scores before and after of the episodes that ended last, at least 50 if there are."""
        few = max(50, len(self.before) // 4)
        return np.array(self.before[-few:]), np.array(self.after[-few:])

    def add(self, step: Transition) -> None:
        """Adds one transition."""
        self.transitions += 1
        update = self.updates[step.update]
        update.steps += 1
        operator = step.operator[:_LONGEST_KEY]
        category = (step.category or "no category")[:_LONGEST_KEY]
        update.operators[LEAVES_ALONE if operator == STOP else operator] += 1
        if step.failed:
            self.failed += 1
            return
        previous_score, score, reward = step.previous_score, step.score, step.reward
        assert score is not None
        if (gained := step.episode_return) is not None:
            update.episodes += 1
            update.returns += gained
            update.squared_returns += gained**2
            self.before.append(score - gained)
            self.after.append(score)
        if operator == STOP:
            return
        turned = (previous_score < RIGHT <= score, score < RIGHT <= previous_score)
        pairs: list[tuple[Name, Name]] = [(operator, category), (operator, ALL), (ALL, category)]
        for key in (*pairs, (ALL, ALL)):
            cell = self.cells.setdefault(key, [0, 0.0, 0, 0])
            for place, value in enumerate((1, reward, *turned)):
                cell[place] += value
        # A second rewrite is left out: what it was given is not what the person asked.
        if step.query == step.original_query and reward:
            self._consider(step, reward)

    def _consider(self, step: Transition, reward: float) -> None:
        """Keeps the example if it is among the best or the worst, one for each question."""
        kept, sign = (self.best, 1) if reward > 0 else (self.worst, -1)
        question = step.question_id
        known = kept.get(question)
        if known is not None and sign * known.reward >= sign * reward:
            return
        texts = ("operator", "category", "query", "rewritten_query", "previous_answer", "answer")
        cut = {name: getattr(step, name)[:_LONGEST_TEXT] for name in texts}
        kept[question] = Example(
            **cut, previous_score=step.previous_score, score=step.score or 0.0, reward=reward
        )
        if len(kept) > 4 * _KEPT:
            for name in sorted(kept, key=lambda name: -sign * kept[name].reward)[_KEPT:]:
                del kept[name]

    def examples(self, best: bool) -> list[Example]:
        """The best or the worst rewrites, of different operators where there are enough."""
        kept, sign = (self.best, 1) if best else (self.worst, -1)
        ordered = sorted(kept.values(), key=lambda example: -sign * example.reward)
        chosen: list[Example] = []
        for most in range(1, EXAMPLES + 1):
            for example in ordered:
                used = sum(other.operator == example.operator for other in chosen)
                if len(chosen) < EXAMPLES and used < most and example not in chosen:
                    chosen.append(example)
        return sorted(chosen, key=lambda example: -sign * example.reward)


def digest(transitions: Iterable[Transition]) -> Digest:
    """What the transitions add up to."""
    found = Digest()
    for step in transitions:
        found.add(step)
    return found


def digest_run(run: Path) -> Digest:
    """What the transition log of a run adds up to."""
    return digest(read_transitions(run))


def finite(value: Any) -> float | None:
    """The value as a number; None for what is none, not finite or absurd."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < _LARGEST else None
