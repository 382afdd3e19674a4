"""What every way of asking makes of a question, measured call by call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ppo.steps import Predictor
from query_mutator.data import Question
from query_mutator.environment.episodes import EpisodeState, EpisodeView, opening_flow, rewrite_flow
from query_mutator.environment.greedy import greedy_flow
from query_mutator.environment.keeping import Keeper
from query_mutator.environment.scoring import score_flow
from query_mutator.evaluation.contenders import Contender
from query_mutator.models.calls import Failure, Outcome
from query_mutator.models.roles import Roles
from query_mutator.objectives import Objective, Score
from query_mutator.operators import Operator

UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Tried:
    """One way of asking one question, and what came of it; plain values."""

    score: float
    terms: dict[str, dict[str, Any]]
    prompt: str
    rewritten_question: str
    answer: str
    operators: list[str]
    target_calls: int
    mutator_calls: int
    seconds: float
    """What its calls took the server, also where they were made long ago."""
    cut: bool = False
    """Whether the answer ended at its limit of tokens; records of before do not tell."""


@dataclass(frozen=True)
class Measured:
    """A question asked in every way; `failure` says why one of the calls has no answer."""

    id: str
    question: str
    meaning: str
    category: str
    sha256: str
    """Of all that is known of the question: a record of another one is not taken for it."""
    ways: dict[str, Tried]
    """Unchanged, and by each operator alone."""
    policy: Tried | None = None
    failure: str = ""
    contenders: dict[str, Tried] = field(default_factory=dict)
    """By each adapter to compare, asked alone."""
    last_kept: Tried | None = None
    """As the policy would have it if its last answer were always kept; None where it is."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Asking:
    """All that is needed to ask questions in every way and to judge the answers."""

    operators: Sequence[Operator]
    view: EpisodeView
    objective: Objective
    roles: Roles
    policy: Predictor | None = None
    """None where only the single operators are of interest."""
    contenders: Sequence[Contender] = ()
    keeper: Keeper | None = None
    """What says which answer the policy keeps; None where that is the last."""


def fingerprint(question: Question) -> str:
    """A digest that changes with anything in the question."""
    return hashlib.sha256(json.dumps(asdict(question), sort_keys=True).encode()).hexdigest()


async def measure_flow(question: Question, asking: Asking) -> Measured:
    """The flow of one question: unchanged, by each operator, and as the policy would have it.

    And by each contender.
    """
    ways: dict[str, Tried] = {}
    contenders: dict[str, Tried] = {}

    def result(policy: Tried | None, failure: str, last_kept: Tried | None = None) -> Measured:
        return Measured(
            question.id,
            question.question,
            question.meaning,
            question.category,
            fingerprint(question),
            ways,
            policy,
            failure,
            contenders,
            last_kept,
        )

    state, answer = await opening_flow(
        question.question, asking.roles, max_rewrites=asking.view.max_rewrites
    )
    if answer.failed:
        return result(None, f"answer: {answer.reason}")
    score = await score_flow(question, state, asking.objective, asking.roles)
    if isinstance(score, Failure):
        return result(None, score.reason)
    ways[UNCHANGED] = _tried(score, state, [], [answer.call], [])
    alone = [(ways, operator.name, operator, asking.roles) for operator in asking.operators]
    for one in asking.contenders:
        roles = replace(asking.roles, rewriter_model=one.model)
        alone.append((contenders, one.name, one.operator, roles))
    for found, name, operator, roles in alone:
        rewrite = await rewrite_flow(state, 0, [operator], roles)
        if rewrite.failure is not None:
            return result(None, rewrite.failure.reason)
        score = await score_flow(question, rewrite.state, asking.objective, asking.roles)
        if isinstance(score, Failure):
            return result(None, score.reason)
        # A rewrite that changed nothing was answered before: by itself it would cost that call.
        asked = [rewrite.answer.call or answer.call]
        found[name] = _tried(score, rewrite.state, [name], asked, [rewrite.mutation.call])
    if asking.policy is None:
        return result(None, "")
    policy = await policy_flow(question, asking)
    if isinstance(policy, Failure):
        return result(None, policy.reason)
    if asking.keeper is None:
        return result(policy, "")
    last_kept = await policy_flow(question, replace(asking, keeper=None))
    if isinstance(last_kept, Failure):
        return result(None, last_kept.reason)
    return result(policy, "", last_kept)


async def policy_flow(question: Question, asking: Asking) -> Tried | Failure:
    """What the policy makes of the question, or why a call has failed."""
    assert asking.policy is not None
    episode = await greedy_flow(
        asking.policy,
        question.question,
        asking.operators,
        asking.view,
        asking.roles,
        keeper=asking.keeper,
    )
    if episode.failure is not None:
        return episode.failure
    score = await score_flow(question, episode.state, asking.objective, asking.roles)
    if isinstance(score, Failure):
        return score
    chosen = [asking.operators[number].name for number in episode.state.tried]
    return _tried(score, episode.state, chosen, episode.answer_calls, episode.mutation_calls)


def _tried(
    score: Score,
    state: EpisodeState,
    operators: list[str],
    answers: Sequence[Outcome | None],
    mutations: Sequence[Outcome | None],
) -> Tried:
    answered, mutated = ([call for call in calls if call] for calls in (answers, mutations))
    return Tried(
        score.total,
        {name: asdict(term) for name, term in score.terms.items()},
        state.prompt,
        state.current,
        state.answer,
        operators,
        len(answered),
        len(mutated),
        sum(call.reply.served_s for call in (*answered, *mutated)),
        state.answer_cut,
    )
