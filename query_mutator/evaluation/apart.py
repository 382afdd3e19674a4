"""The parts of a score told apart: facts, and wording."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from query_mutator.evaluation.measuring import Tried
from query_mutator.evaluation.statistics import Difference, Numbers, paired_differences

FACTS = "facts"
"""The term of a score that is the share of key facts in an answer."""
WORDING = "wording"
TERMS = {FACTS: "facts", WORDING: "closeness"}
"""The term that each part is, before its weight: facts are a share, wording goes from 0 to 1."""


def part(tried: Tried, name: str) -> float:
    """One part of a score; not a number where the score has no such term."""
    return float(tried.terms.get(TERMS[name], {}).get("value", math.nan))


def parts_of(tried: Sequence[Tried]) -> dict[str, Numbers]:
    """Every part of every score."""
    return {name: np.array([part(one, name) for one in tried]) for name in TERMS}


def apart(
    differences: Mapping[str, Numbers], groups: Sequence[str], *, seed: int = 0
) -> dict[str, Difference]:
    """The mean difference in each part, over the questions that have it; those that none has are
    left out.

    Bonferroni's correction, as not all questions may have all parts.
    """
    known = {name: ~np.isnan(values) for name, values in differences.items()}
    known = {name: rows for name, rows in known.items() if rows.any()}
    level = 1 - 0.05 / max(1, len(known))
    found: dict[str, Difference] = {}
    for name, rows in known.items():
        of_these = [group for group, has in zip(groups, rows, strict=True) if has]
        family = {name: differences[name][rows]}
        found |= paired_differences(family, groups=of_these, level=level, seed=seed)
    return found


def mean_part(values: Numbers) -> float | None:
    """The mean over the questions that have the part; None where none has."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
