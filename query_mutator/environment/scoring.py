"""From an answered question to its score: evidence is gathered by calls, then judged in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ppo.steps import Predictor
from query_mutator.data import Question
from query_mutator.environment.episodes import EpisodeState, EpisodeView, opening_state
from query_mutator.environment.greedy import greedy_flow
from query_mutator.environment.keeping import Keeper
from query_mutator.models.calls import Failure
from query_mutator.models.encoders import Encoder
from query_mutator.models.flows import FlowRunner
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models
from query_mutator.objectives import AnsweredQuestion, Batch, Objective, Score, Term
from query_mutator.operators import Operator


async def score_flow(
    question: Question, state: EpisodeState, objective: Objective, roles: Roles
) -> Score | Failure:
    """The score of the answer in `state`, or why a call that it needs has failed."""
    answered = _answered(question, state)
    if objective.gather is not None:
        evidence = await objective.gather(answered, roles.without_sampling())
        if evidence.failure:
            return Failure("evidence", evidence.failure)
        answered = replace(answered, evidence=evidence.value)
    return await answered


def _answered(question: Question, state: EpisodeState) -> AnsweredQuestion:
    return AnsweredQuestion(
        question=question.question,
        rewritten_question=state.current,
        template=state.template_text,
        answer=state.answer,
        first_answer=state.first_answer,
        reference=question.reference,
        key_facts=question.key_facts,
        columns=question.columns,
    )


def gained_again(
    question: Question,
    state: EpisodeState,
    objective: Objective,
    encoder: Encoder,
    *,
    score: Score,
    gained: float,
) -> tuple[Score, float]:
    """The score of an episode under way, and what it has gained, computed anew without a call.

    `score` and `gained` are those that the episode had by another score.
    """
    opening = opening_state(question.question, state.first_answer, cut=False, max_rewrites=0)
    found = [_answered(question, opening), _answered(question, state)]
    first, now = objective.again(
        Batch.of(found, encoder.encode_each), [opening_terms(score.total - gained), score.terms]
    )
    return now, now.total - first.total if state.tried else 0.0


def opening_terms(total: float) -> dict[str, Term]:
    """What is known of the score of a first answer whose terms were not kept.

    All of it is from terms other than drift: nothing had been rewritten.
    """
    return {"unchanged": Term(total)}


async def gain_flow(
    question: Question,
    policy: Predictor,
    operators: Sequence[Operator],
    view: EpisodeView,
    objective: Objective,
    roles: Roles,
    *,
    keeper: Keeper | None = None,
) -> float | None:
    """How much better the policy has the question answered; None where a call has failed."""
    episode = await greedy_flow(policy, question.question, operators, view, roles, keeper=keeper)
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
