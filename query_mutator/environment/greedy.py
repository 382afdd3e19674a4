"""What a trained policy does with a question: the most probable action at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppo.steps import Predictor
from query_mutator.environment.asking import TargetAnswer
from query_mutator.environment.episodes import (
    STOP_ACTION,
    EpisodeState,
    EpisodeView,
    Rewrite,
    opening_flow,
    rewrite_flow,
)
from query_mutator.environment.keeping import Keeper, kept_flow
from query_mutator.models.calls import Failure, Outcome
from query_mutator.models.roles import Roles
from query_mutator.operators import Operator


@dataclass(frozen=True)
class GreedyEpisode:
    """An episode as the policy would have it."""

    state: EpisodeState
    """What was reached; where a call failed, what had been reached before it."""
    opened: EpisodeState
    """The question unchanged."""
    opening: TargetAnswer
    rewrites: tuple[Rewrite, ...]
    dropped: tuple[Rewrite, ...]
    """Those of them whose answer was not kept."""
    probabilities: tuple[float, ...]
    """Of all actions, at the first choice; empty where there was none."""
    failure: Failure | None = None

    @property
    def mutation_calls(self) -> list[Outcome]:
        return [call for rewrite in self.rewrites if (call := rewrite.mutation.call)]

    @property
    def answer_calls(self) -> list[Outcome]:
        answers = [self.opening, *(rewrite.answer for rewrite in self.rewrites)]
        return [answer.call for answer in answers if answer.call]


async def greedy_flow(
    policy: Predictor,
    question: str,
    operators: Sequence[Operator],
    view: EpisodeView,
    roles: Roles,
    *,
    keeper: Keeper | None = None,
    least_probability: float = 0.0,
) -> GreedyEpisode:
    """The flow of one question: ask, let the policy choose, rewrite, ask again, keep the better.

    A choice that is less probable than `least_probability` is not carried out. Without a keeper
    the last answer is kept.
    """
    state, opening = await opening_flow(question, roles, max_rewrites=view.max_rewrites)
    opened = state
    rewrites: list[Rewrite] = []
    dropped: list[Rewrite] = []
    first: tuple[float, ...] = ()
    failure = opening.call.failure if opening.call else None
    while failure is None and state.steps_left > 0:
        observation = await view.observe_flow(state)
        log_probs, _ = policy.predict(observation[None], view.action_mask(state)[None])
        probabilities = np.exp(log_probs[0])
        first = first or tuple(float(probability) for probability in probabilities)
        action = int(probabilities.argmax())
        if action == STOP_ACTION or probabilities[action] < least_probability:
            break
        rewrite = await rewrite_flow(state, action - 1, operators, roles)
        failure = rewrite.failure
        if failure is None:
            choice = await kept_flow(keeper, state, rewrite.state)
            rewrites.append(rewrite)
            if not choice.kept:
                dropped.append(rewrite)
            state = choice.state
    return GreedyEpisode(state, opened, opening, tuple(rewrites), tuple(dropped), first, failure)
