"""Several policies of one task, such as those of several seeds, judged together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from query_mutator.base.errors import UserError
from query_mutator.evaluation.apart import apart, mean_part
from query_mutator.evaluation.comparison import LAST_KEPT, RANDOM, gained_in_parts, with_last_kept
from query_mutator.evaluation.measuring import UNCHANGED, Measured
from query_mutator.evaluation.statistics import Difference, Numbers, paired_differences

BEST_SINGLE = "best single"


@dataclass(frozen=True)
class Evaluated:
    """The held-out questions as one policy had them answered."""

    heldout: Sequence[Measured]
    best_single: str
    """The way that was best on training questions."""
    available: int | None = None
    """How many held-out questions there are; None where nobody knows."""


@dataclass(frozen=True)
class Together:
    """The mean lead of several policies over the simple ways of asking."""

    policies: int
    questions: int
    ahead: dict[str, Difference]
    """By way; the intervals hold together, for these policies on further questions."""
    each: dict[str, list[float]]
    """By way, the mean lead of each policy."""
    apart: dict[str, Difference] = field(default_factory=dict)
    """Their mean lead over the unchanged question in facts and in wording."""
    each_apart: dict[str, list[float]] = field(default_factory=dict)
    """The same of each policy."""
    available: int | None = None
    """How many held-out questions there are that all could be asked; None where nobody knows."""


def compare_together(evaluated: Sequence[Evaluated]) -> Together:
    """The mean over the policies, question by question, on the questions that all were asked."""
    by_question = [{one.sha256: one for one in each.heldout} for each in evaluated]
    asked = [sha256 for sha256 in by_question[0] if all(sha256 in one for one in by_question)]
    if not asked:
        raise UserError("the runs have no held-out question in common: evaluate each by itself")
    leads: dict[str, list[Numbers]] = {}
    parts: dict[str, list[Numbers]] = {}
    for measured, one in zip(by_question, evaluated, strict=True):
        of_these = [measured[sha256] for sha256 in asked]
        for name, lead in _leads(of_these, one.best_single).items():
            leads.setdefault(name, []).append(lead)
        for name, gained in gained_in_parts(of_these).items():
            parts.setdefault(name, []).append(gained)
    # What only some of the runs have is no mean over all.
    leads = {name: each for name, each in leads.items() if len(each) == len(evaluated)}
    meanings = [by_question[0][sha256].meaning for sha256 in asked]
    in_parts = apart({name: np.mean(each, axis=0) for name, each in parts.items()}, meanings)
    return Together(
        len(evaluated),
        len(asked),
        paired_differences(
            {name: np.mean(each, axis=0) for name, each in leads.items()}, groups=meanings
        ),
        {name: [float(lead.mean()) for lead in each] for name, each in leads.items()},
        in_parts,
        {name: [mean_part(gained) or 0.0 for gained in parts[name]] for name in in_parts},
        min((one.available for one in evaluated if one.available is not None), default=None),
    )


def _leads(measured: Sequence[Measured], best_single: str) -> dict[str, Numbers]:
    """The policy's lead over each simple way, question by question."""
    rows = []
    last_kept = with_last_kept(measured)
    for one in measured:
        assert one.policy is not None
        operators = [tried.score for name, tried in one.ways.items() if name != UNCHANGED]
        others = [one.ways[UNCHANGED].score, np.mean(operators), one.ways[best_single].score]
        rows.append(one.policy.score - np.array(others))
    leads = dict(zip((UNCHANGED, RANDOM, BEST_SINGLE), np.array(rows).T, strict=True))
    if last_kept:
        pairs = zip(measured, last_kept, strict=True)
        leads[LAST_KEPT] = np.array(
            [one.policy.score - last.score for one, last in pairs if one.policy is not None]
        )
    return leads
