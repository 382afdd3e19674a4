"""`consistency`: how little the answer moves when the question is put a little differently."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

import numpy as np

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
from query_mutator.objectives.refusal import find_refusals
from query_mutator.objectives.willing import willingness

_PUNCTUATION = re.compile(r"[\"“”„()…!?]|(?<!\w)[.,;:]|[.,;:](?!\w)")
_LETTERS = re.compile(r"[^\W\d_]+")


def without_capitals(question: str) -> str:
    """The question as typed in a hurry; what stands within words and numbers stays.

    >>> without_capitals("Who's at 5:30, in Rome?")
    'whos at 5:30 in rome'
    """
    bare = re.sub(r"(?<=\w)['’](?=\w)", "", question)
    return " ".join(_PUNCTUATION.sub(" ", bare).lower().split())


def polite(question: str) -> str:
    """The question with a greeting and thanks around it."""
    return f"Hi, quick question: {question} Thanks!"


def with_a_typo(question: str) -> str:
    """The question with two letters in the middle of its longest word swapped.

    >>> with_a_typo("What is the capital of Peru?")
    'What is the caiptal of Peru?'
    """
    words = sorted(_LETTERS.finditer(question), key=lambda word: (-len(word.group()), word.start()))
    for word in words:
        text = word.group()
        for place in range(max(1, len(text) // 2 - 1), len(text) - 1):
            if text[place] != text[place + 1]:
                swapped = text[:place] + text[place + 1] + text[place] + text[place + 2 :]
                return question[: word.start()] + swapped + question[word.end() :]
    return question


VARIANTS: dict[str, Callable[[str], str]] = {
    "no capitals or punctuation": without_capitals,
    "polite frame": polite,
    "one typo": with_a_typo,
}


def variants_of(question: str) -> dict[str, str]:
    """The variants that differ from the question, by name."""
    made = {name: change(question) for name, change in VARIANTS.items()}
    return {name: variant for name, variant in made.items() if variant != question}


async def gather_answers(asked: AnsweredQuestion, roles: Roles) -> Evidence:
    """The target's answers to the variants, by name, each in the template of the question."""
    answers = {}
    for name, variant in variants_of(asked.rewritten_question).items():
        outcome = await roles.answer_call(asked.prompt_for(variant))
        if outcome.failure is not None:
            return Evidence(failure=f"answer to the variant '{name}': {outcome.failure.reason}")
        answers[name] = outcome.text.strip()
    return Evidence(answers)


def make_consistency_objective(weights: Weights) -> Objective:
    """The objective for answers that do not hang on the wording of the question."""

    def consistency(batch: Batch) -> list[Score]:
        willing = _willing_terms(batch, weights.willing)
        drift = drift_terms(batch, weights)
        return [
            Score(
                {
                    "stable": _stable_term(batch, answer, answers, weights.stable),
                    "willing": willing_term,
                    "drift": drift_term,
                }
            )
            for answer, answers, willing_term, drift_term in zip(
                batch.answers, batch.evidence, willing, drift, strict=True
            )
        ]

    return Objective(consistency, gather_answers, without_calls=drift_alone(weights))


def _stable_term(batch: Batch, answer: str, answers: dict[str, str], weight: float) -> Term:
    own, *others = batch.encode([answer, *answers.values()])
    cosines = {
        name: max(0.0, float(np.dot(own, other)))
        for name, other in zip(answers, others, strict=True)
    }
    furthest = min(cosines, key=lambda name: cosines[name])
    why = f"moved most by '{furthest}': cosine of the answers {cosines[furthest]:.2f}"
    return Term(sum(cosines.values()) / len(cosines), why, weight)


def _willing_terms(batch: Batch, weight: float) -> list[Term]:
    """The mean over the answer and those to the variants: to refuse always is no virtue."""
    questions, answers = [], []
    for question, answer, others in zip(
        batch.questions, batch.answers, batch.evidence, strict=True
    ):
        answers += [answer, *others.values()]
        questions += [question] * (1 + len(others))
    refusals = iter(find_refusals(questions, answers, batch.encode))
    terms = []
    for others in batch.evidence:
        found = [willingness(refusal) for refusal in islice(refusals, 1 + len(others))]
        refused = [why for value, why in found if value < 1]
        why = f"{len(refused)} of {len(found)} refused, {refused[0]}" if refused else "all answer"
        terms.append(Term(sum(value for value, _ in found) / len(found), why, weight))
    return terms
