"""From an answered question to its score: evidence is gathered by calls, then judged in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from query_mutator.data import Question
from query_mutator.environment.episodes import EpisodeState, EpisodeView
from query_mutator.environment.greedy import Predictor, greedy_flow
from query_mutator.models.calls import Failure
from query_mutator.models.flows import FlowRunner
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models
from query_mutator.objectives import AnsweredQuestion, Batch, Objective, Score
from query_mutator.operators import Operator


async def score_flow(
    question: Question, state: EpisodeState, objective: Objective, roles: Roles
) -> Score | Failure:
    """The score of the answer in `state`, or why a call that it needs has failed."""
    answered = AnsweredQuestion(
        question=question.question,
        rewritten_question=state.current,
        template=state.template_text,
        answer=state.answer,
        first_answer=state.first_answer,
        reference=question.reference,
        key_facts=question.key_facts,
        columns=question.columns,
    )
    if objective.gather is not None:
        evidence = await objective.gather(answered, roles.without_sampling())
        if evidence.failure:
            return Failure("evidence", evidence.failure)
        answered = replace(answered, evidence=evidence.value)
    return await answered


async def gain_flow(
    question: Question,
    policy: Predictor,
    operators: Sequence[Operator],
    view: EpisodeView,
    objective: Objective,
    roles: Roles,
) -> float | None:
    """How much better the policy has the question answered; None where a call has failed."""
    episode = await greedy_flow(policy, question.question, operators, view, roles)
    if episode.failure is not None:
        return None
    before = await score_flow(question, episode.opened, objective, roles)
    after = await score_flow(question, episode.state, objective, roles)
    if isinstance(before, Failure) or isinstance(after, Failure):
        return None
    return after.total - before.total


def scoring_runner(
    objective: Objective, models: Models, max_workers: int | None
) -> FlowRunner[Any]:
    """What advances flows that also have answers scored, in batches."""

    def judge(answered: Sequence[AnsweredQuestion]) -> Sequence[Score]:
        return objective(Batch.of(answered, models.encoder.encode_each))

    return models.runner({AnsweredQuestion: judge}, max_workers=max_workers)
