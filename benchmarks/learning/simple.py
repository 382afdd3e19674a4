"""Learners that act at random while they learn: a regression, and the best single operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from benchmarks.learning.learners import Values, bandit
from benchmarks.learning.tasks import Task

Numbers = npt.NDArray[np.float64]

SHRINKING = (10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e5)
"""How many rewards the belief that there is no effect is worth; which, the rewards decide."""
LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Regression:
    """What a rewrite gains: a slope that all operators share, and a mean for each of them."""

    centre: Numbers
    scale: Numbers
    slope: Numbers
    means: Numbers

    def greedy(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """The operator with the best mean where a gain is expected of it, else leaving alone."""
        expected = ((rows - self.centre) / self.scale) @ self.slope
        best = int(self.means.argmax())
        return np.where(expected + self.means[best] > 0, best + 1, 0)


def fitted(
    rows: npt.NDArray[np.float32],
    actions: npt.NDArray[np.int64],
    rewards: Numbers,
    num_operators: int,
) -> Regression:
    """The regression on rewards of operators; slope and means are shrunk as is most likely.

    The overall mean is as measured. What the slope and what the differences between operators are
    shrunk by is chosen by the evidence (MacKay, 1992): the probability of the rewards under a
    normal prior for each of the two.
    """
    centre, spread = rows.mean(0), rows.std(0)
    scale = np.where(spread > 0, spread, 1.0)
    chosen = np.eye(num_operators)[actions - 1]
    shares = chosen.mean(0)
    columns = np.concatenate([chosen - shares, (rows - centre) / scale], axis=1).astype(float)
    overall = rewards.mean()
    gram, moments = columns.T @ columns, columns.T @ (rewards - overall)
    total = float(((rewards - overall) ** 2).sum())
    best = -np.inf
    for of_operators, of_slope in product(SHRINKING, SHRINKING):
        prior = np.repeat([of_operators, of_slope], [num_operators, rows.shape[1]])
        posterior = gram + np.diag(prior)
        weights = np.linalg.solve(posterior, moments)
        # Per reward, so that the scale of the rewards does not matter.
        variance = max((total - weights @ moments) / len(rewards), LEAST_VARIANCE)
        evidence = np.log(prior).sum() - np.linalg.slogdet(posterior)[1]
        evidence -= len(rewards) * np.log(variance)
        if evidence > best:
            best, found = evidence, weights
    means = overall + found[:num_operators] - shares @ found[:num_operators]
    return Regression(centre, scale, found[num_operators:], means)


def regression(task: Task, seed: int, budgets: Sequence[int]) -> Values:
    """A regression on the rewards of operators drawn at random."""

    def greedy_after(
        rows: npt.NDArray[np.float32], actions: npt.NDArray[np.int64], rewards: Numbers
    ) -> Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int64]]:
        return fitted(rows, actions, rewards, task.num_actions - 1).greedy

    return at_random(task, seed, budgets, greedy_after)


def best_single_seen(task: Task, seed: int, budgets: Sequence[int]) -> Values:
    """The operator with the best mean of what was drawn so far; none where none is above 0."""

    def greedy_after(
        _: npt.NDArray[np.float32], actions: npt.NDArray[np.int64], rewards: Numbers
    ) -> Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int64]]:
        sums = np.bincount(actions, rewards, minlength=task.num_actions)
        counts = np.bincount(actions, minlength=task.num_actions)
        best = int((sums / np.maximum(counts, 1)).argmax())
        return lambda rows: np.full(len(rows), best)

    return at_random(task, seed, budgets, greedy_after)


def best_single_in_hindsight(task: Task, seed: int, budgets: Sequence[int]) -> Values:
    """The operator that is best on the held-out contexts, or none where none is above 0."""
    best = int(task.worth[task.heldout].mean(0).argmax())
    return dict.fromkeys(budgets, task.judged(np.full(len(task.heldout), best)))


def at_random(
    task: Task,
    seed: int,
    budgets: Sequence[int],
    greedy_after: Callable[
        [npt.NDArray[np.float32], npt.NDArray[np.int64], Numbers],
        Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int64]],
    ],
) -> Values:
    """A learner that draws an operator for each context, and chooses by all that it has seen.

    `greedy_after` makes of the contexts, the actions and the rewards what chooses.
    """
    generator = np.random.default_rng([seed, 5])
    seen: list[tuple[npt.NDArray[np.float32], int, float]] = []

    def choose(_: npt.NDArray[np.float32]) -> int:
        return int(generator.integers(1, task.num_actions))

    def learn(row: npt.NDArray[np.float32], action: int, reward: float) -> None:
        seen.append((row, action, reward))

    def greedy(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        contexts, actions, rewards = zip(*seen, strict=True)
        return greedy_after(np.stack(contexts), np.array(actions), np.array(rewards))(rows)

    return bandit(task, seed, budgets, choose, learn, greedy)
