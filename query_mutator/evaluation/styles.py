"""What each way of asking gains on questions as people type them, and on clearly asked ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from query_mutator.base.tables import layout
from query_mutator.base.terminal import counted
from query_mutator.data import Question
from query_mutator.data.twins import CLEAR, MESSY
from query_mutator.evaluation.apart import TERMS, part
from query_mutator.evaluation.comparison import POLICY
from query_mutator.evaluation.gap import SCORE
from query_mutator.evaluation.measuring import UNCHANGED, Measured, Tried, fingerprint
from query_mutator.evaluation.moved import with_interval
from query_mutator.evaluation.statistics import Difference, Numbers, paired_differences


@dataclass(frozen=True)
class StyleGains:
    """What the ways of asking add to the questions of one style, unchanged."""

    style: str
    """`messy` or `clear`."""
    questions: int
    ways: dict[str, dict[str, Difference]]
    """By way (the policy, every operator, every contender), then by measure: `score`, and `facts`
    and `wording` where the objective tells them."""


def gains_by_style(
    heldout: Sequence[Measured], questions: Sequence[Question], *, seed: int = 0
) -> tuple[StyleGains, ...]:
    """The gains on each style, of the questions whose column `style` is `messy` or `clear`.

    The intervals hold together within a style and a measure.
    """
    styles = {
        fingerprint(question): str(question.columns.get("style", "")).casefold()
        for question in questions
    }
    found = []
    for style in (MESSY, CLEAR):
        asked = [one for one in heldout if styles.get(one.sha256) == style]
        if asked:
            found.append(StyleGains(style, len(asked), _gains(asked, seed)))
    return tuple(found)


def styles_as_text(found: Sequence[StyleGains]) -> list[str]:
    """A heading and a table for each style."""
    parts = []
    for one in found:
        measures = list(next(iter(one.ways.values())))
        rows = [
            (way, *(with_interval(gains[measure]) for measure in measures))
            for way, gains in one.ways.items()
        ]
        heading = f"gain over unchanged on {counted(one.questions, f'{one.style} question')}"
        parts += [heading, layout([("", *measures), *rows], indent="  ")]
    return parts


def _gains(asked: Sequence[Measured], seed: int) -> dict[str, dict[str, Difference]]:
    unchanged = [one.ways[UNCHANGED] for one in asked]
    meanings = [one.meaning for one in asked]
    ways = _ways(asked)
    found: dict[str, dict[str, Difference]] = {way: {} for way in ways}
    for measure in (SCORE, *TERMS):
        before = _values(unchanged, measure)
        known = ~np.isnan(before)
        if not known.any():
            continue
        family = {way: (_values(tried, measure) - before)[known] for way, tried in ways.items()}
        groups = [meaning for meaning, tells in zip(meanings, known, strict=True) if tells]
        for way, difference in paired_differences(family, groups=groups, seed=seed).items():
            found[way][measure] = difference
    return found


def _ways(asked: Sequence[Measured]) -> Mapping[str, Sequence[Tried]]:
    ways = {POLICY: [one.policy for one in asked if one.policy is not None]}
    for name in asked[0].ways:
        if name != UNCHANGED:
            ways[name] = [one.ways[name] for one in asked]
    for name in asked[0].contenders:
        ways[name] = [one.contenders[name] for one in asked]
    return ways


def _values(tried: Sequence[Tried], measure: str) -> Numbers:
    values = [one.score if measure == SCORE else part(one, measure) for one in tried]
    return np.array(values, float)
