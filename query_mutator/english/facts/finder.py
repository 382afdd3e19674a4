"""Whether an answer gives the facts that a right answer must give."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from query_mutator.english.facts.judging import DECIDED_AGAINST, Fact, Mention, find_mentions
from query_mutator.english.facts.weighing import Weights, probability

NOT_MENTIONED = "not mentioned"
WEIGHTS_FILE = Path(__file__).with_name("weights.toml")


@dataclass(frozen=True)
class Found:
    """Whether an answer gives a fact, and why it was decided so."""

    found: bool
    why: str
    probability: float = 0.0
    """That a person would say that the answer gives it."""


def find_facts(
    answer: str, facts: Sequence[Sequence[str]], question: str = "", reference: str = ""
) -> list[bool]:
    """For each fact, a list of wordings, whether the answer gives it.

    Without the question it is enough that a wording is there, and not denied, of another unit or
    one of several numbers.

    >>> find_facts("It has EIGHT legs, not 1,000.", [["8", "eight"], ["1000"], ["six"]])
    [True, False, False]
    >>> sky = "What colour is a clear sky?"
    >>> find_facts("A clear sky is green. Blue is the sea.", [["blue"]], sky)
    [False]
    """
    return [one.found for one in judge_facts(answer, facts, question, reference)]


def judge_facts(
    answer: str, facts: Sequence[Sequence[str]], question: str = "", reference: str = ""
) -> list[Found]:
    """For each fact, whether the answer gives it, and why it was decided so.

    >>> judge_facts("It is Au.", [["Ag"]], "What is the symbol of silver?")
    [Found(found=False, why='not mentioned', probability=0.0)]
    >>> judge_facts("Not Sydney, but Canberra.", [["Sydney"]], "Which city is it?")
    [Found(found=False, why='denied', probability=0.0)]
    """
    return [_judge(answer, tuple(fact), question, reference, len(facts) == 1) for fact in facts]


def _judge(answer: str, fact: Fact, question: str, reference: str, only: bool) -> Found:
    if sign := next((w for w in fact if w in answer and not any(map(str.isalnum, w))), ""):
        return Found(True, sign, 1.0)
    mentions = find_mentions(answer, question, reference, fact)
    if question or not mentions:
        return decide(mentions, only, shipped_weights())
    here = [mention for mention in mentions if mention.veto not in DECIDED_AGAINST]
    return Found(bool(here), here[0].said if here else mentions[0].veto, float(bool(here)))


def decide(mentions: Sequence[Mention], only: bool, weights: Weights) -> Found:
    """Whether one of the mentions of a fact is the answer; `only` where it is the only fact."""
    possible = [mention for mention in mentions if not mention.veto]
    if not possible:
        return Found(False, mentions[0].veto if mentions else NOT_MENTIONED)
    if only and possible[0].amount is not None:
        return _judge_amount(possible)
    best = max(possible, key=lambda mention: probability(mention.signs, weights))
    probable = probability(best.signs, weights)
    if probable >= weights.threshold:
        return Found(True, best.said, probable)
    rival = f"another answer comes first: {best.rival}" if best.rival else "said of something else"
    return Found(False, rival, probable)


def _judge_amount(mentions: Sequence[Mention]) -> Found:
    for mention in mentions:
        if mention.amount == mention.said_amount:
            return Found(True, mention.said, 1.0)
    return Found(False, f"the answer comes to {mentions[0].amount or 'no number'}")


@functools.cache
def shipped_weights() -> Weights:
    """What `learn` has written."""
    values = tomllib.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return Weights(values["bias"], values["threshold"], values["signs"])
