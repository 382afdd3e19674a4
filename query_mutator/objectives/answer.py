"""`answer`: key facts and closeness to the reference answer, minus drift from what was asked."""

from __future__ import annotations

from query_mutator.english.facts import NOT_MENTIONED, judge_facts
from query_mutator.english.words import sentences
from query_mutator.objectives.base import Batch, Objective, Score, Term, Weights
from query_mutator.objectives.drift import drift_terms

FAR, CLOSE = 0.3, 0.7
"""Cosines of a sentence and the reference that count 0 and 1 where there are key facts. Above, a
right sentence would be paid for having the reference's length and wording; below, two sentences
share no more than a topic."""
MOST_SENTENCES = 20


def make_answer_objective(weights: Weights) -> Objective:
    """The objective for questions with a reference answer."""

    def answer(batch: Batch) -> list[Score]:
        closeness = best_cosines(batch)
        drift = drift_terms(batch, weights)
        scores = []
        for index, facts in enumerate(batch.key_facts):
            terms = {}
            weight, full_marks = weights.closeness, CLOSE
            if facts:
                terms["facts"] = _facts_term(batch, index, weights.facts)
            else:
                # Closeness stands for both, so scores stay comparable; nothing else tells a right
                # sentence from a near one, so it goes on counting up to the reference itself.
                weight, full_marks = weights.closeness + weights.facts, 1.0
            cosine, sentence = closeness[index]
            terms["closeness"] = Term(
                min(1.0, max(0.0, (cosine - FAR) / (full_marks - FAR))),
                f"cosine {cosine:.2f} of the reference and: {sentence}",
                weight,
            )
            terms["drift"] = drift[index]
            scores.append(Score(terms))
        return scores

    return Objective(answer, needs_reference=True)


def best_cosines(batch: Batch) -> list[tuple[float, str]]:
    """For each answer the cosine of its nearest sentence with the reference, and the sentence.

    The cosine of a whole answer falls with its length, whatever it says.
    """
    parts = [sentences(answer)[:MOST_SENTENCES] or [""] for answer in batch.answers]
    vectors = batch.encode([sentence for part in parts for sentence in part])
    references = batch.encode(batch.references)
    best, start = [], 0
    for part, reference in zip(parts, references, strict=True):
        cosines = [float(row @ reference) for row in vectors[start : start + len(part)]]
        start += len(part)
        nearest = max(range(len(part)), key=lambda index: cosines[index])
        best.append((cosines[nearest], part[nearest]))
    return best


def _facts_term(batch: Batch, index: int, weight: float) -> Term:
    facts = batch.key_facts[index]
    found = judge_facts(
        batch.answers[index], facts, batch.questions[index], batch.references[index]
    )
    missing = [
        fact[0] if one.why == NOT_MENTIONED else f"{fact[0]} ({one.why})"
        for fact, one in zip(facts, found, strict=True)
        if not one.found
    ]
    why = f"missing: {', '.join(missing)}" if missing else "all key facts found"
    return Term(sum(one.found for one in found) / len(found), why, weight)
