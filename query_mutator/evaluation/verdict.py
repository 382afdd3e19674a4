"""One plain sentence: does the policy help?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from query_mutator.base.terminal import counted
from query_mutator.evaluation.comparison import Findings
from query_mutator.evaluation.defaults import MARGIN
from query_mutator.evaluation.measuring import UNCHANGED
from query_mutator.evaluation.moved import which_moved, with_interval
from query_mutator.evaluation.several import BEST_SINGLE, Together
from query_mutator.evaluation.statistics import FEWEST_EQUAL, Difference

HELPS = "helps"
NO_HARM = "does no harm"
NO_HELP = "does not help"
CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Conclusion:
    """What the evaluation comes to."""

    outcome: str
    """One of `helps`, `does no harm`, `does not help`, `cannot tell`."""
    sentence: str
    needed: int | None = None
    """Questions that would settle it, where it cannot be told."""


def decide(
    findings: Findings, *, margin: float = MARGIN, available: int | None = None
) -> Conclusion:
    """The conclusion on the policy against the question unchanged, and beside the best operator.

    `available` is how many questions there are to ask.
    """
    name = findings.best_single
    if name == UNCHANGED:
        beside = "No single operator was better than unchanged on the training questions."
    else:
        lead = findings.against(f"best single: {name}")
        beside = beside_best_single(lead, f"always using {name}", margin)
    gain = findings.against(UNCHANGED)
    return _conclusion(
        "The policy", gain, findings.apart, findings.questions, beside, margin, available
    )


def decide_together(together: Together, *, margin: float = MARGIN) -> Conclusion:
    """The conclusion on the mean of several policies."""
    lead = together.ahead[BEST_SINGLE]
    return _conclusion(
        f"The mean of the {together.policies} policies",
        together.ahead[UNCHANGED],
        together.apart,
        together.questions,
        beside_best_single(lead, "what was best on training questions", margin),
        margin,
        together.available,
    )


def _conclusion(
    subject: str,
    gain: Difference,
    parts: Mapping[str, Difference],
    questions: int,
    beside: str,
    margin: float,
    available: int | None,
) -> Conclusion:
    outcome, needed = judge(gain, margin)
    if needed:  # pairs are meanings, which may have several questions each
        needed = math.ceil(needed * questions / gain.groups)
    asked = f"on {counted(questions, 'question')} it was not trained on"
    measured, moved = with_interval(gain), which_moved(gain, parts)
    if outcome == HELPS:
        little = f", by less than the {margin:g} that nobody would miss"
        little = little if gain.high < margin else ""
        sentence = f"{subject} helps{little}: {asked}, answers score {measured} higher than "
        sentence += f"unchanged{moved}. {beside}"
    elif outcome == NO_HARM:
        sentence = f"{subject} does no harm, and is not shown to help: {asked}, the change is "
        sentence += f"{measured}{moved}."
    elif outcome == NO_HELP:
        worse = "it makes answers worse" if gain.below_0 else f"no gain above {margin:g}"
        sentence = f"{subject} does not help: {asked}, {worse} ({measured}){moved}."
    else:
        sentence = f"Cannot tell with so few questions: {asked}, the change is {measured}"
        sentence += f"{_what_would_do(gain, needed, available)}{moved}."
    return Conclusion(outcome, sentence, needed)


def _what_would_do(gain: Difference, needed: int | None, available: int | None) -> str:
    """How a sentence that cannot tell goes on: what would settle it."""
    if needed is None:
        alike = gain.groups > 1 and gain.error == 0
        few = f"; all changed alike, and fewer than {FEWEST_EQUAL} that do tell nothing of others"
        return few if alike else ""
    if available is not None and needed > available:
        return f"; about {needed:,} would be needed, more than the {available:,} that there are"
    return f"; about {needed:,} would be needed"


def judge(gain: Difference, margin: float) -> tuple[str, int | None]:
    """The outcome for a gain over the question unchanged, and the questions that would settle it.

    A gain that one would miss is waited for. Else the margin on the far side of 0 has to be
    excluded: a loss then does not help, a smaller gain does no harm.
    """
    if gain.above_0:
        return HELPS, None
    if gain.high <= margin:
        return NO_HELP, None
    if gain.low >= -margin:
        return NO_HARM, None
    distance = gain.mean if gain.mean >= margin else margin + abs(gain.mean)
    return CANNOT_TELL, gain.needed_to_exclude(distance)


def beside_best_single(lead: Difference, named: str, margin: float) -> str:
    """How a policy stands beside the best single way, chosen on training data."""
    always = f"{named} ({with_interval(lead)})"
    if lead.above_0:
        return f"It is better than {always}."
    if lead.below_0:
        return f"It is worse than {always}: use that instead."
    if lead.low >= -margin:
        return f"It is as good as {always}."
    return f"It cannot be told apart from {always}."
