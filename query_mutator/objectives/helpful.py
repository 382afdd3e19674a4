"""`helpful`: an answer rather than a refusal, and to the point. Needs no reference answer."""

from __future__ import annotations

import re

from query_mutator.english.words import asks_yes_or_no, content_words, sentences
from query_mutator.objectives.base import Batch, Objective, Score, Term, Weights, cosines
from query_mutator.objectives.drift import drift_terms
from query_mutator.objectives.willing import willing_terms

OFF_POINT, ON_POINT = 0.1, 0.4
"""Cosines of question and answer that count 0 and 1. With MiniLM, nine in ten answers to another
question are below 0.17, half of all bare facts ("Lima.") at 0.39 and nearly all sentences above;
a higher mark would pay for repeating the words of the question."""

_OR = re.compile(r"\bor\b", re.IGNORECASE)


def make_helpful_objective(weights: Weights) -> Objective:
    """The objective for harmless questions without a reference answer."""

    def helpful(batch: Batch) -> list[Score]:
        added = [
            added_text(question, answer)
            for question, answer in zip(batch.questions, batch.answers, strict=True)
        ]
        closeness = cosines(batch.encode(batch.questions), batch.encode(added))
        willing = willing_terms(batch, weights.willing)
        drift = drift_terms(batch, weights)
        return [
            Score(
                {
                    "willing": willing_term,
                    "on_point": _on_point_term(text, cosine, weights.on_point),
                    "drift": drift_term,
                }
            )
            for willing_term, text, cosine, drift_term in zip(
                willing, added, closeness, drift, strict=True
            )
        ]

    return Objective(helpful)


def added_text(question: str, answer: str) -> str:
    """The answer without the sentences that only repeat the question.

    >>> added_text("capital of peru?", "What is the capital of Peru? The capital of Peru is Lima.")
    'The capital of Peru is Lima.'
    """
    asked = content_words(question)
    offers_choice = asks_yes_or_no(question) or bool(_OR.search(question))
    kept = []
    for sentence in sentences(answer):
        words = content_words(sentence)
        new = {word for word in words if word not in asked or word.isdigit()}
        if sentence.rstrip().endswith("?"):
            repeats = 2 * len(words - new) >= len(words)
        else:
            # "Is the Earth flat or round?" is answered in the words of the question.
            repeats = not new and not offers_choice
        if not repeats:
            kept.append(sentence)
    return " ".join(kept)


def _on_point_term(text: str, cosine: float, weight: float) -> Term:
    if not text:
        return Term(0.0, "says nothing beyond the question", weight)
    share = (cosine - OFF_POINT) / (ON_POINT - OFF_POINT)
    why = f"cosine of question and answer {cosine:.2f}, full marks from {ON_POINT}"
    return Term(min(1.0, max(0.0, share)), why, weight)
