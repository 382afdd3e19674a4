"""From an answered question to its score: evidence is gathered by calls, then judged in batches."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from query_mutator.data import Question
from query_mutator.environment.episodes import EpisodeState, EpisodeView
from query_mutator.environment.greedy import Predictor, greedy_flow
from query_mutator.models.encoders import Encoder
from query_mutator.models.flows import Encode, encode_handler
from query_mutator.models.roles import Roles
from query_mutator.objectives import AnsweredQuestion, Batch, Evidence, Objective, Score
from query_mutator.operators import Operator


@dataclass(frozen=True)
class Judge:
    """A flow's wish for the score of an answer."""

    question: Question
    state: EpisodeState
    evidence: Any = None
    """What the objective's own calls found out."""


def score_flow(
    question: Question, state: EpisodeState, objective: Objective, roles: Roles
) -> Generator[Any, Any, Score | str]:
    """The score of the answer in `state`, or the reason why a call that it needs has failed."""
    evidence = Evidence()
    if objective.gather is not None:
        asked = AnsweredQuestion(
            question=question.question,
            rewritten_question=state.current,
            template=state.template_text,
            answer=state.answer,
            first_answer=state.first_answer,
            reference=question.reference,
            key_facts=question.key_facts,
            columns=question.columns,
        )
        evidence = yield from objective.gather(asked, roles.without_sampling())
    if evidence.failure:
        return evidence.failure
    score: Score = yield Judge(question, state, evidence.value)
    return score


def gain_flow(
    question: Question,
    policy: Predictor,
    operators: Sequence[Operator],
    view: EpisodeView,
    objective: Objective,
    roles: Roles,
) -> Generator[Any, Any, float | None]:
    """How much better the policy has the question answered; None where a call has failed."""
    episode = yield from greedy_flow(policy, question.question, operators, view, roles)
    if episode.failure:
        return None
    before = yield from score_flow(question, episode.opened, objective, roles)
    after = yield from score_flow(question, episode.state, objective, roles)
    if isinstance(before, str) or isinstance(after, str):
        return None
    return after.total - before.total


def flow_handlers(objective: Objective, encoder: Encoder) -> dict[type, Any]:
    """What the flows of an environment may wish for: embeddings and scores, in batches."""

    def judge(requests: Sequence[Judge]) -> Sequence[Score]:
        return objective(
            Batch(
                questions=[request.question.question for request in requests],
                rewritten_questions=[request.state.current for request in requests],
                answers=[request.state.answer for request in requests],
                references=[request.question.reference for request in requests],
                key_facts=[request.question.key_facts for request in requests],
                encode=encoder.encode_each,
                columns=[request.question.columns for request in requests],
                evidence=[request.evidence for request in requests],
            )
        )

    return {Encode: encode_handler(encoder.encode_each), Judge: judge}
