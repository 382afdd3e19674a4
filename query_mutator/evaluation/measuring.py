"""What every way of asking makes of a question, measured call by call."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from query_mutator.data import Question
from query_mutator.environment.asking import CallCost
from query_mutator.environment.episodes import EpisodeState, EpisodeView, opening_flow, rewrite_flow
from query_mutator.environment.greedy import Predictor, greedy_flow
from query_mutator.environment.scoring import score_flow
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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Measured:
        """What `to_json` gave."""
        ways = {name: Tried(**tried) for name, tried in stored["ways"].items()}
        policy = Tried(**stored["policy"]) if stored["policy"] else None
        return cls(**{**stored, "ways": ways, "policy": policy})


@dataclass(frozen=True)
class Asking:
    """All that is needed to ask questions in every way and to judge the answers."""

    operators: Sequence[Operator]
    view: EpisodeView
    objective: Objective
    roles: Roles
    policy: Predictor | None = None
    """None where only the single operators are of interest."""


def fingerprint(question: Question) -> str:
    """A digest that changes with anything in the question."""
    return hashlib.sha256(json.dumps(asdict(question), sort_keys=True).encode()).hexdigest()


def measure_flow(question: Question, asking: Asking) -> Generator[Any, Any, Measured]:
    """The flow of one question: unchanged, by each operator, and as the policy would have it."""
    ways: dict[str, Tried] = {}

    def result(policy: Tried | None, failure: str) -> Measured:
        return Measured(
            question.id,
            question.question,
            question.meaning,
            question.category,
            fingerprint(question),
            ways,
            policy,
            failure,
        )

    state, answer = yield from opening_flow(
        question.question, asking.roles, max_rewrites=asking.view.max_rewrites
    )
    if answer.failed:
        return result(None, f"answer: {answer.reason}")
    score = yield from score_flow(question, state, asking.objective, asking.roles)
    if isinstance(score, str):
        return result(None, score)
    ways[UNCHANGED] = _tried(score, state, [], [answer.cost], [])
    for number, operator in enumerate(asking.operators):
        rewrite = yield from rewrite_flow(state, number, asking.operators, asking.roles)
        if rewrite.failure:
            return result(None, rewrite.failure)
        score = yield from score_flow(question, rewrite.state, asking.objective, asking.roles)
        if isinstance(score, str):
            return result(None, score)
        # A rewrite that changed nothing was answered before: by itself it would cost that call.
        answered = rewrite.answer.cost if rewrite.asked_target else answer.cost
        mutated = [rewrite.mutation.cost] if rewrite.asked_mutator else []
        ways[operator.name] = _tried(score, rewrite.state, [operator.name], [answered], mutated)
    if asking.policy is None:
        return result(None, "")
    policy = yield from policy_flow(question, asking)
    return result(None, policy) if isinstance(policy, str) else result(policy, "")


def policy_flow(question: Question, asking: Asking) -> Generator[Any, Any, Tried | str]:
    """What the policy makes of the question, or the reason why a call has failed."""
    assert asking.policy is not None
    episode = yield from greedy_flow(
        asking.policy, question.question, asking.operators, asking.view, asking.roles
    )
    if episode.failure:
        return episode.failure
    score = yield from score_flow(question, episode.state, asking.objective, asking.roles)
    if isinstance(score, str):
        return score
    chosen = [asking.operators[number].name for number in episode.state.tried]
    return _tried(score, episode.state, chosen, episode.answer_costs, episode.mutation_costs)


def _tried(
    score: Score,
    state: EpisodeState,
    operators: list[str],
    answers: Sequence[CallCost],
    mutations: Sequence[CallCost],
) -> Tried:
    return Tried(
        score.total,
        {name: asdict(term) for name, term in score.terms.items()},
        state.prompt,
        state.current,
        state.answer,
        operators,
        len(answers),
        len(mutations),
        sum(cost.served_s for cost in (*answers, *mutations)),
    )
