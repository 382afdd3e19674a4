"""`answer`: key facts and closeness to the reference answer, minus drift from what was asked."""

from __future__ import annotations

from query_mutator.english.facts import NOT_MENTIONED, judge_facts
from query_mutator.objectives.base import Batch, Objective, Score, Term, Weights
from query_mutator.objectives.closeness import Closeness, find_closeness
from query_mutator.objectives.drift import drift_terms

WITHOUT_FACTS = 0.4
"""The most that closeness counts where none of the key facts is found: under half, so that no
wording makes up for them."""


def make_answer_objective(weights: Weights) -> Objective:
    """The objective for questions with a reference answer."""

    def answer(batch: Batch) -> list[Score]:
        closeness = [
            find_closeness(*texts)
            for texts in zip(batch.questions, batch.references, batch.answers, strict=True)
        ]
        drift = drift_terms(batch, weights)
        scores = []
        for index, facts in enumerate(batch.key_facts):
            terms = {}
            if facts:
                terms["facts"] = _facts_term(batch, index, weights.facts)
                terms["closeness"] = _capped_term(
                    closeness[index], terms["facts"].value, weights.closeness
                )
            else:
                # Closeness stands for both, so scores stay comparable.
                found, weight = closeness[index], weights.closeness + weights.facts
                terms["closeness"] = Term(found.value, found.why, weight)
            terms["drift"] = drift[index]
            scores.append(Score(terms))
        return scores

    return Objective(answer, needs_reference=True)


def _capped_term(closeness: Closeness, facts: float, weight: float) -> Term:
    """Closeness, less where key facts are missing."""
    most = WITHOUT_FACTS + (1.0 - WITHOUT_FACTS) * facts
    why = closeness.why if most == 1.0 else f"{closeness.why} (× {most:.2f}: key facts are missing)"
    return Term(closeness.value * most, why, weight)


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
