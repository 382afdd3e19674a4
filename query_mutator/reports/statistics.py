"""What repeated runs prove: interquartile means, bootstrap intervals, probabilities, by scipy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LEVEL = 0.95
RESAMPLES = 5_000
QUARTER = 0.25
FEW_SEEDS = 5
"""Below this, a bootstrap gives the range of the values, whatever level it is asked for."""


def interquartile_mean(values: Any, axis: int = -1) -> Any:
    """The mean of the middle half; of fewer than 4 values the mean of all.

    >>> float(interquartile_mean([0, 1, 2, 90]))
    1.5
    """
    from scipy import stats

    return stats.trim_mean(values, QUARTER, axis=axis)


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float] | None:
    """The bootstrap interval of the interquartile mean: of few values their range, of one None."""
    if len(values) < 2:
        return None
    if len(values) < FEW_SEEDS:
        return float(min(values)), float(max(values))
    return _bootstrap((np.asarray(values, dtype=np.float64),), interquartile_mean, seed)


def probability_of_improvement(
    values: Any, baseline: Any, *, better: str = "higher", axis: int = -1
) -> Any:
    """How probable it is that one of `values` is better than one of `baseline`; ties count half.

    >>> float(probability_of_improvement([1, 2, 3], [0, 2]))
    0.75
    """
    from scipy import stats

    values, baseline = np.asarray(values, dtype=float), np.asarray(baseline, dtype=float)
    pairs = values.shape[axis] * baseline.shape[axis]
    wins = stats.mannwhitneyu(values, baseline, axis=axis, method="asymptotic").statistic
    return wins / pairs if better == "higher" else 1 - wins / pairs


def improvement_interval(
    values: Sequence[float], baseline: Sequence[float], *, better: str = "higher", seed: int = 0
) -> tuple[float, float] | None:
    """The bootstrap interval of that probability; None where a side has few values: of 2 against 2
    that do not overlap it would be 1 to 1.
    """
    if min(len(values), len(baseline)) < FEW_SEEDS:
        return None

    def probability(left: Any, right: Any, axis: int = -1) -> Any:
        return probability_of_improvement(left, right, better=better, axis=axis)

    samples = (np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64))
    return _bootstrap(samples, probability, seed)


def _bootstrap(samples: tuple[Any, ...], statistic: Any, seed: int) -> tuple[float, float]:
    from scipy import stats

    with np.errstate(invalid="ignore", divide="ignore"):  # of ties alone there is no variance
        found = stats.bootstrap(
            samples,
            statistic,
            vectorized=True,
            method="percentile",
            n_resamples=RESAMPLES,
            confidence_level=LEVEL,
            rng=np.random.default_rng(seed),
        ).confidence_interval
    return float(found.low), float(found.high)
