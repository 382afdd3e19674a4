"""`answer`: key facts and closeness to the reference answer, minus drift from what was asked."""

from __future__ import annotations

from objectives.base import Batch, Objective, Score, Term, Weights, cosines
from objectives.drift import drift_terms
from objectives.facts import find_facts


def make_answer_objective(weights: Weights) -> Objective:
    """The objective for questions with a reference answer."""

    def answer(batch: Batch) -> list[Score]:
        closeness = cosines(batch.encode(batch.answers), batch.encode(batch.references))
        drift = drift_terms(batch, weights)
        scores = []
        for index, facts in enumerate(batch.key_facts):
            terms = {}
            closeness_weight = weights.closeness
            if facts:
                terms["facts"] = _facts_term(batch.answers[index], facts, weights.facts)
            else:
                # With no facts to look for, closeness stands for both, so scores stay comparable.
                closeness_weight += weights.facts
            terms["closeness"] = Term(
                max(0.0, closeness[index]), "cosine of answer and reference", closeness_weight
            )
            terms["drift"] = drift[index]
            scores.append(Score(terms))
        return scores

    return Objective(answer, needs_reference=True)


def _facts_term(answer: str, facts: tuple[tuple[str, ...], ...], weight: float) -> Term:
    found = find_facts(answer, facts)
    missing = [fact[0] for fact, present in zip(facts, found, strict=True) if not present]
    why = f"missing: {', '.join(missing)}" if missing else "all key facts found"
    return Term(sum(found) / len(found), why, weight)
