"""Answers rated by other means than the objective: without the reference, and by key facts."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.data import Question
from query_mutator.english.facts import find_facts
from query_mutator.evaluation.comparison import Rate
from query_mutator.evaluation.measuring import UNCHANGED, Measured, Tried, fingerprint
from query_mutator.models.encoders import Encoder
from query_mutator.objectives import AnsweredQuestion, Batch, Weights
from query_mutator.objectives.helpful import make_helpful_objective
from query_mutator.objectives.judge import JudgeAgreement, agreement_with_facts


def judge_and_facts(
    questions: Sequence[Question], measured: Sequence[Measured]
) -> JudgeAgreement | None:
    """How the judge's verdicts on each operator's answers compare with the key facts in them.

    None where no question has key facts.
    """
    asked = {fingerprint(one): one for one in questions if one.key_facts}
    pairs = []
    for one in measured:
        if question := asked.get(one.sha256):
            shares = {name: share_found(tried, question) for name, tried in one.ways.items()}
            pairs += [
                (tried.terms["verdict"]["why"].split(":")[0], shares[UNCHANGED], shares[name])
                for name, tried in one.ways.items()
            ]
    return agreement_with_facts(pairs) if pairs else None


def share_found(tried: Tried, question: Question) -> float:
    """The share of the question's key facts that an answer gives."""
    facts = question.key_facts
    found = find_facts(tried.answer, facts, question.question, question.reference)
    return sum(found) / len(facts)


def helpful_rate(encoder: Encoder) -> Rate:
    """Rates answers as `helpful` scores them: it needs no reference."""
    objective = make_helpful_objective(Weights())

    def rate(measured: Measured, tried: Sequence[Tried]) -> list[float]:
        answered = [
            AnsweredQuestion(measured.question, one.rewritten_question, "", one.answer, "")
            for one in tried
        ]
        return [score.total for score in objective(Batch.of(answered, encoder.encode_each))]

    return rate
