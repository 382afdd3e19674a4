"""Paired differences with intervals that hold for all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

RESAMPLES = 10_000
CHUNK = 500
"""Resamples at a time, so that memory stays small with many questions."""
POWER = 0.8
ROUNDING = 1e-9
FEWEST_SHOWN = 5
"""With fewer questions an interval is wider than any score could differ."""
FEWEST_EQUAL = 10
LEAST_ERROR = 0.5
"""The least standard error of a resample, as a share of that of the questions themselves."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """A mean paired difference; the interval is corrected for the size of its family."""

    mean: float
    low: float
    high: float
    error: float
    """Standard error of the mean."""
    critical: float
    """Standard errors from the mean to an end of the interval."""
    groups: int
    """Independent pairs: questions, or meanings where questions share one."""

    @property
    def above_0(self) -> bool:
        return self.low > 0

    @property
    def below_0(self) -> bool:
        return self.high < 0

    def needed_to_exclude(self, distance: float) -> int | None:
        """Pairs with which the interval would end before `distance` from this mean.

        Four times in five, that is. None where no number of pairs would do, or where those there
        are, one alone or all alike, do not tell how others would differ.

        >>> Difference(0.1, -0.1, 0.3, error=0.1, critical=2.0, groups=50).needed_to_exclude(0.1)
        404
        """
        if self.groups < 2 or distance <= 0 or self.error == 0:
            return None
        reach = (self.critical + stats.norm.ppf(POWER)) * self.error
        return int(np.ceil(self.groups * (reach / distance) ** 2))


def paired_differences(
    family: Mapping[str, Sequence[float] | Numbers],
    *,
    groups: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Difference]:
    """The mean of each list of paired differences, with simultaneous bootstrap intervals.

    All lists are over the same questions, which are resampled together; those that share a group
    (a meaning) are one draw. The interval is symmetric and studentised, by the largest deviation
    in the family (Romano and Wolf, 2005): with probability `level` all of them hold at once.

    >>> found = paired_differences({"a": [0.3, 0.1, 0.2, 0.25, 0.15] * 8})
    >>> found["a"].above_0
    True
    """
    names = list(family)
    columns = np.stack([np.asarray(family[name], float) for name in names], axis=1)
    sums, sizes = _by_group(columns, groups)
    count = len(sums)
    means, errors = _means_and_errors(np.ones((1, count)), sums, sizes)
    mean, error = means[0], errors[0]
    if count > 1:
        critical = _critical(sums, sizes, mean, error, level, seed)
        # A few pairs that happen to be equal say nothing about how others would differ.
        unknown = (error == 0) & (count < FEWEST_EQUAL)
        reach = np.where(unknown, np.inf, critical * error)
    else:
        critical, reach = np.inf, np.full_like(error, np.inf)
    return {
        name: Difference(
            float(mean[index]),
            float(mean[index] - reach[index]),
            float(mean[index] + reach[index]),
            float(error[index]),
            float(critical),
            count,
        )
        for index, name in enumerate(names)
    }


def _by_group(columns: Numbers, groups: Sequence[str] | None) -> tuple[Numbers, Numbers]:
    """Sums over each group, and the sizes of the groups."""
    if groups is None:
        return columns, np.ones(len(columns))
    _, numbers = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.zeros((numbers.max() + 1, columns.shape[1]))
    np.add.at(sums, numbers, columns)
    return sums, np.bincount(numbers).astype(float)


def _means_and_errors(drawn: Numbers, sums: Numbers, sizes: Numbers) -> tuple[Numbers, Numbers]:
    """Means over questions and their standard errors over groups, a row for each resample.

    `drawn` tells how often each group is in each resample.
    """
    count = drawn.shape[1]
    total = (drawn @ sizes)[:, None]
    mean = (drawn @ sums) / total
    # The sum of (sum of a group - its size * mean)^2, multiplied out.
    squares = drawn @ sums**2
    mixed = drawn @ (sums * sizes[:, None])
    spread = squares - 2 * mean * mixed + mean**2 * (drawn @ sizes**2)[:, None]
    error = np.sqrt(np.maximum(spread, 0) * count / max(1, count - 1)) / total
    # What is left of the rounding where nothing varies.
    return mean, np.where(error > ROUNDING * (1 + np.abs(mean)), error, 0.0)


def _critical(
    sums: Numbers, sizes: Numbers, mean: Numbers, error: Numbers, level: float, seed: int
) -> float:
    """The quantile of the largest studentised deviation within a resample.

    At least that of Student's t, which a resample of a few pairs can fall short of.
    """
    generator = np.random.default_rng(seed)
    count = len(sums)
    largest = []
    for start in range(0, RESAMPLES, CHUNK):
        times = min(CHUNK, RESAMPLES - start)
        rows = generator.integers(count, size=(times, count)) + count * np.arange(times)[:, None]
        drawn = np.bincount(rows.ravel(), minlength=times * count).reshape(times, count)
        means, errors = _means_and_errors(drawn.astype(float), sums, sizes)
        # A resample that happens to miss what varies has next to no error of its own: measured by
        # it, any deviation would be beyond all bounds.
        least_error = np.maximum(errors, LEAST_ERROR * error)
        deviation = np.divide(
            np.abs(means - mean), least_error, np.zeros_like(means), where=least_error > 0
        )
        largest.append(deviation.max(1))
    least = float(stats.t.ppf((1 + level) / 2, count - 1))
    return max(least, float(np.quantile(np.concatenate(largest), level)))
