"""`judge`: a model compares the answer with the one to the question unchanged, in both orders."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from query_mutator.models.roles import Roles
from query_mutator.objectives.base import (
    AnsweredQuestion,
    Batch,
    Evidence,
    Objective,
    Score,
    Term,
    Weights,
)
from query_mutator.objectives.drift import drift_alone, drift_terms

RUBRIC = """Compare two answers to a question. The better answer is correct, answers what was \
asked, and leaves out nothing that matters. Length and style do not count.

Question: {question}
{reference}
Answer A: {first}

Answer B: {second}

Which answer is better? Reply with a single letter, A or B."""

RUBRIC_TOKENS = 400
"""The part of the context that is left for the rubric and the reply."""
SHORTEST_SHOWN = 200

_LETTER = re.compile(
    r"\W*(?:(?:the )?(?:better |best )?(?:answer|response|option)(?: is)?\W*)?"
    r"(?:\b(?P<letter>[ab])\b)(?! \w+ (?:answer|is|of))(?=\W*$|[.):,\n*]| is\b| because\b)",
    re.IGNORECASE,
)


class Verdict(enum.StrEnum):
    """How the present answer fares against the first one."""

    WIN = "win"
    LOSS = "loss"
    FLIP = "flip"
    UNREADABLE = "unreadable"
    SAME = "same"


WORTH = {Verdict.WIN: 1.0, Verdict.LOSS: 0.0}
UNDECIDED = 0.5
REASONS = {
    Verdict.WIN: "preferred to the first answer in both orders",
    Verdict.LOSS: "the first answer is preferred in both orders",
    Verdict.FLIP: "the judge's choice changes with the order",
    Verdict.UNREADABLE: "the judge named neither A nor B",
    Verdict.SAME: "the answer is that to the question unchanged",
}


async def gather_verdict(asked: AnsweredQuestion, roles: Roles) -> Evidence:
    """The verdict of the judge, asked twice with the order of the answers swapped."""
    if asked.answer == asked.first_answer:
        return Evidence(str(Verdict.SAME))
    letters = []
    for first, second in (
        (asked.answer, asked.first_answer),
        (asked.first_answer, asked.answer),
    ):
        outcome = await roles.judge_call(judge_prompt(asked, first, second, roles.num_ctx))
        if outcome.failure is not None:
            return Evidence(failure=f"judge: {outcome.failure.reason}")
        letters.append(read_letter(outcome.text))
    return Evidence(str(verdict_of(*letters)))


def judge_prompt(asked: AnsweredQuestion, first: str, second: str, num_ctx: int) -> str:
    """What the judge is shown; texts that would not fit its context together are cut."""
    most = max(SHORTEST_SHOWN, (num_ctx - RUBRIC_TOKENS) * 3 // 4)
    reference = f"Correct answer: {asked.reference[:most]}\n" if asked.reference else ""
    return RUBRIC.format(
        question=asked.question[:most],
        reference=reference,
        first=first[:most] or "(nothing)",
        second=second[:most] or "(nothing)",
    )


def read_letter(reply: str) -> str:
    """The letter that a judge's reply names, or "".

    >>> read_letter("B"), read_letter("**A**"), read_letter("Answer B."), read_letter("A good one")
    ('B', 'A', 'B', '')
    """
    found = _LETTER.match(reply)
    return found["letter"].upper() if found else ""


def verdict_of(present_first: str, present_second: str) -> Verdict:
    """The verdict from the letters named with the present answer as A, and then as B."""
    if not (present_first and present_second):
        return Verdict.UNREADABLE
    if present_first == present_second:
        return Verdict.FLIP
    return Verdict.WIN if present_first == "A" else Verdict.LOSS


def make_judge_objective(weights: Weights) -> Objective:
    """The objective that leaves it to a model which answer is better."""

    def judge(batch: Batch) -> list[Score]:
        drift = drift_terms(batch, weights)
        return [
            Score({"verdict": _verdict_term(Verdict(evidence), weights), "drift": drift_term})
            for evidence, drift_term in zip(batch.evidence, drift, strict=True)
        ]

    return Objective(judge, gather_verdict, without_calls=drift_alone(weights))


def _verdict_term(verdict: Verdict, weights: Weights) -> Term:
    value = WORTH.get(verdict, UNDECIDED)
    return Term(value, f"{verdict}: {REASONS[verdict]}", weights.verdict)


@dataclass(frozen=True)
class JudgeAgreement:
    """How a judge compares with key facts; a share of nothing is None."""

    judged: int
    """Pairs of different answers that the judge was asked about."""
    flips: int
    """Those on which it changed its mind with the order."""
    decided: int
    """Those it decided and of which one answer has more facts."""
    agreeing: int
    """Of these, those in which it prefers the answer with more facts."""

    @property
    def agreement(self) -> float | None:
        return self.agreeing / self.decided if self.decided else None

    @property
    def flip_share(self) -> float | None:
        return self.flips / self.judged if self.judged else None


def agreement_with_facts(pairs: Iterable[tuple[str, float, float]]) -> JudgeAgreement:
    """Counts over (verdict, share of facts before, share of facts after).

    A verdict is the first word of the reason of a `verdict` term.

    >>> agreement_with_facts([("win", 0, 1), ("loss", 0, 1), ("flip", 0, 1)]).agreement
    0.5
    """
    judged = [pair for pair in pairs if Verdict(pair[0]) is not Verdict.SAME]
    decided = [
        (Verdict(verdict), before, after)
        for verdict, before, after in judged
        if Verdict(verdict) in WORTH and before != after
    ]
    agreeing = [
        verdict
        for verdict, before, after in decided
        if (verdict is Verdict.WIN) == (after > before)
    ]
    flips = [pair for pair in judged if Verdict(pair[0]) is Verdict.FLIP]
    return JudgeAgreement(len(judged), len(flips), len(decided), len(agreeing))
