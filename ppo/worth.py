"""What each action is worth: a regression on all returns seen so far.

A few hundred noisy returns say little about each action by itself. So actions share what they
can: a slope common to all (where doing anything helps), a mean of their own that is pulled
towards the common one, and slopes of their own that are pulled to none. How hard to pull is read
off the data by the evidence (MacKay, "Bayesian interpolation", 1992). Action 0 does nothing, and
is worth nothing by definition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]

COMMON_SPREADS = (0.02, 0.05, 0.1, 0.2, 0.4)
"""How far what is common to all actions may vary from place to place, in deviations of returns."""
MEAN_SPREADS = (0.05, 0.15, 0.5)
OWN_SPREADS = (0.02, 0.1, 0.4)
LEVEL_SPREAD = 0.3
NOISES = (0.3, 0.6, 0.8, 0.9, 0.97)
"""Shares of the returns' square that may be noise."""
LEAST_DEVIATION = 1e-6


@dataclass(frozen=True)
class Worth:
    """A Bayesian line for each action through what is seen; the bias comes last."""

    weights: Matrix
    """A row for each action."""
    covariances: Matrix
    """Of each action's row: how little is known of it."""

    def of(self, observations: Rows) -> Matrix:
        """A row for each observation, a column for each action."""
        return _with_one(observations) @ self.weights.T

    def deviation(self, observations: Rows) -> Matrix:
        """How far off that may be: one standard deviation."""
        rows = _with_one(observations)
        return np.sqrt(np.einsum("ni,aij,nj->na", rows, self.covariances, rows).clip(0.0))


@dataclass(frozen=True)
class Spreads:
    """Deviations of the coefficients before anything is seen, in units of the returns."""

    common: float
    mean: float
    own: float
    noise: float
    """The variance of what cannot be told beforehand."""


def fit_worth(
    observations: Rows, actions: npt.NDArray[np.int64], returns: Rows, num_actions: int
) -> Worth:
    """The regression on rows of what was seen, done and got."""
    size = observations.shape[1]
    worth = Worth(np.zeros((num_actions, size + 1)), np.zeros((num_actions, size + 1, size + 1)))
    did = actions > 0
    seen, got = observations[did].astype(np.float64), returns[did].astype(np.float64)
    unit = float(np.sqrt(np.mean(got**2))) if len(got) else 0.0
    if unit < LEAST_DEVIATION:
        return worth
    centre, spread = seen.mean(0), seen.std(0)
    varies = np.flatnonzero(spread > LEAST_DEVIATION)
    scale = spread[varies] * np.sqrt(max(1, len(varies)))
    known = (seen[:, varies] - centre[varies]) / scale
    lines = _lines((known, actions[did] - 1, got / unit), num_actions - 1)
    # From deviations of what varies, level first, to all that is seen, bias last.
    back = np.zeros((size + 1, len(varies) + 1))
    back[-1, 0] = 1.0
    back[varies, np.arange(1, len(varies) + 1)] = 1.0 / scale
    back[-1, 1:] = -centre[varies] / scale
    for action, (mean, covariance) in enumerate(lines, start=1):
        worth.weights[action] = unit * back @ mean
        worth.covariances[action] = unit**2 * back @ covariance @ back.T
    return worth


def _with_one(observations: Rows) -> Matrix:
    return np.concatenate([observations, np.ones((len(observations), 1))], axis=1)


def _lines(
    rows: tuple[Matrix, npt.NDArray[np.int64], Matrix], num_actions: int
) -> list[tuple[Matrix, Matrix]]:
    """The mean and the covariance of level and slopes of each action, common and own together."""
    seen, done, got = rows
    which = np.eye(num_actions)[done]
    shared = np.concatenate([np.ones((len(seen), 1)), seen, which], axis=1)
    slopes = (which[:, :, None] * seen[:, None, :]).reshape(len(seen), -1)
    size = seen.shape[1]
    rough, whole = _Regression.of(shared, got), _Regression.of(np.hstack([shared, slopes]), got)
    choices = [Spreads(*values) for values in product(COMMON_SPREADS, MEAN_SPREADS, [0.0], NOISES)]
    best = max(choices, key=lambda spreads: rough.evidence(_prior(size, num_actions, spreads)))
    finer = [
        replace(best, own=own, noise=noise)
        for own, noise in product(OWN_SPREADS, NOISES)
        if noise <= best.noise
    ]
    finest = max(finer, key=lambda spreads: whole.evidence(_prior(size, num_actions, spreads)))
    priors = _prior(size, num_actions, best), _prior(size, num_actions, finest)
    if rough.evidence(priors[0]) >= whole.evidence(priors[1]):
        chosen, prior = rough, priors[0]
    else:
        chosen, prior = whole, priors[1]
    mean, covariance = chosen.posterior(prior)
    lines = []
    for action in range(num_actions):
        adding = np.zeros((size + 1, len(mean)))
        adding[:, : size + 1] = np.eye(size + 1)
        adding[0, size + 1 + action] = 1.0
        if chosen is whole:
            first = size + 1 + num_actions + action * size
            adding[1:, first : first + size] = np.eye(size)
        lines.append((adding @ mean, adding @ covariance @ adding.T))
    return lines


@dataclass(frozen=True)
class _Prior:
    deviations: Matrix
    noise: float


def _prior(size: int, num_actions: int, spreads: Spreads) -> _Prior:
    shared = [[LEVEL_SPREAD], np.full(size, spreads.common), np.full(num_actions, spreads.mean)]
    own = [np.full(num_actions * size, spreads.own)] if spreads.own else []
    return _Prior(np.concatenate([*shared, *own]), spreads.noise)


@dataclass(frozen=True)
class _Regression:
    """All that a linear regression needs of its rows."""

    gram: Matrix
    moment: Matrix
    energy: float
    rows: int

    @classmethod
    def of(cls, rows: Matrix, got: Matrix) -> _Regression:
        return cls(rows.T @ rows, rows.T @ got, float(got @ got), len(got))

    def evidence(self, prior: _Prior) -> float:
        """The logarithm of how likely the returns are, but for a constant."""
        factor, scaled = self._factor(prior)
        half = np.linalg.solve(factor, scaled)
        fit = self.rows * np.log(prior.noise) + self.energy / prior.noise - half @ half
        return float(-0.5 * fit - np.log(np.diag(factor)).sum())

    def posterior(self, prior: _Prior) -> tuple[Matrix, Matrix]:
        """The coefficients, and their covariance."""
        factor, scaled = self._factor(prior)
        half = np.linalg.solve(factor, np.diag(prior.deviations))
        mean: Matrix = half.T @ np.linalg.solve(factor, scaled)
        covariance: Matrix = half.T @ half
        return mean, covariance

    def _factor(self, prior: _Prior) -> tuple[Matrix, Matrix]:
        scale = prior.deviations
        precision = np.eye(len(scale)) + scale[:, None] * self.gram * scale / prior.noise
        factor = np.linalg.cholesky(precision).astype(np.float64, copy=False)
        return factor, scale * self.moment / prior.noise
