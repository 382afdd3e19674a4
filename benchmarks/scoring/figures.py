"""The figures by which a score is judged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

Numbers = npt.NDArray[np.float64]
FULL = 0.9


def area_under_curve(marks: Numbers, right: npt.NDArray[np.bool_]) -> float:
    """How often a right answer has more marks than a wrong one; half counts where they are equal.

    >>> area_under_curve(np.array([0.2, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    ranks = rankdata(marks)
    many, few = int(right.sum()), int((~right).sum())
    return float((ranks[right].sum() - many * (many + 1) / 2) / (many * few))


def within(values: Numbers, groups: npt.NDArray[np.int64]) -> Numbers:
    """The values less the mean of their group."""
    means = np.bincount(groups, values) / np.bincount(groups)
    centred: Numbers = values - means[groups]
    return centred


def correlation_given(one: Numbers, other: Numbers, given: Numbers | None = None) -> float:
    """The correlation of two columns, at an equal value of a third one if there is one."""
    columns = [one - one.mean(), other - other.mean()]
    if given is not None:
        third = given - given.mean()
        columns = [column - third * (third @ column) / (third @ third) for column in columns]
    return float(np.corrcoef(*columns)[0, 1])


def share_of_wrong_with_full_marks(
    marks: Numbers, right: npt.NDArray[np.bool_], whole: bool = False
) -> float:
    """The share of wrong answers with at least nine tenths of the marks that there are.

    A whole score has no bound of its own: the most that any of the answers got stands for it.
    """
    most = marks.max() if whole else 1.0
    return float(np.mean(marks[~right] >= FULL * most - 1e-9))
