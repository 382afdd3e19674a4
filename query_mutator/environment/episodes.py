"""An episode: a question, the rewrites tried on it, and what the policy sees.

Nothing here knows the reference answer: the same code runs in training and when the trained
policy is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ppo.steps import ActionMask, Observation
from query_mutator.environment.asking import Mutation, TargetAnswer, answer_flow, mutation_flow
from query_mutator.environment.features import answer_features, query_features
from query_mutator.models.calls import Failure
from query_mutator.models.encoders import Vectors
from query_mutator.models.flows import Encode
from query_mutator.models.roles import Roles
from query_mutator.operators import Operator

STOP_ACTION = 0
"""Keep what we have. Operator number k of the list is action k + 1."""
NO_TEMPLATE = "{query}"


@dataclass(frozen=True)
class EpisodeState:
    """All that is known in mid-episode; plain values, so that a checkpoint can hold it."""

    original: str
    current: str
    """The question as rewritten so far, without the text of a template."""
    prompt: str
    """What was last sent to the target model."""
    template: int | None
    """Number of the operator whose template is around the question."""
    template_text: str
    """That template, with `{query}` where the question goes; `{query}` alone without one."""
    first_answer: str
    """The answer to the question unchanged."""
    answer: str
    answer_cut: bool
    tried: tuple[int, ...]
    steps_left: int


@dataclass(frozen=True)
class Rewrite:
    """What one operator did to an episode."""

    state: EpisodeState
    mutation: Mutation
    answer: TargetAnswer

    @property
    def failure(self) -> Failure | None:
        """Why the step failed, if it did."""
        for part, call in (("mutation", self.mutation.call), ("answer", self.answer.call)):
            if call is not None and call.failure is not None:
                return Failure(call.failure.kind, f"{part}: {call.failure.reason}")
        return None


async def opening_flow(
    question: str, roles: Roles, *, max_rewrites: int, seed: int | None = None
) -> tuple[EpisodeState, TargetAnswer]:
    """Asks the question unchanged: the state that every rewrite is compared with."""
    answer = await answer_flow(question, roles, seed=seed)
    return opening_state(question, answer.text, cut=answer.cut, max_rewrites=max_rewrites), answer


def opening_state(question: str, answer: str, *, cut: bool, max_rewrites: int) -> EpisodeState:
    """An episode after the first answer: nothing has been rewritten."""
    return EpisodeState(
        original=question,
        current=question,
        prompt=question,
        template=None,
        template_text=NO_TEMPLATE,
        first_answer=answer,
        answer=answer,
        answer_cut=cut,
        tried=(),
        steps_left=max_rewrites,
    )


async def rewrite_flow(
    state: EpisodeState,
    number: int,
    operators: Sequence[Operator],
    roles: Roles,
    *,
    seed: int | None = None,
) -> Rewrite:
    """Applies operator `number`, and asks the target if that changed the prompt.

    A template goes around the question and replaces the one before it; a rewrite by the model
    changes the question inside it.
    """
    operator = operators[number]
    mutation = await mutation_flow(
        state.current, operator, roles, original=state.original, seed=seed
    )
    template, template_text = state.template, state.template_text
    if operator.template:
        template, template_text = number, operator.template
    prompt = template_text.replace("{query}", mutation.question)
    answer = TargetAnswer(state.answer, cut=state.answer_cut)
    if prompt != state.prompt and not mutation.failed:
        answer = await answer_flow(prompt, roles, seed=seed)
    after = replace(
        state,
        current=mutation.question,
        prompt=prompt,
        template=template,
        template_text=template_text,
        answer=answer.text,
        answer_cut=answer.cut,
        tried=(*state.tried, number),
        steps_left=state.steps_left - 1,
    )
    return Rewrite(after, mutation, answer)


class EpisodeView:
    """How an episode looks to the policy: the layout of observations and the valid actions.

    An observation is a few dozen numbers that say how a question is put and how it was answered.
    Embeddings are not among them: with some thousand steps to learn from, a policy that sees
    them learns its training questions by heart.
    """

    def __init__(self, num_operators: int, max_rewrites: int) -> None:
        self.num_operators = num_operators
        self.num_actions = num_operators + 1
        self.max_rewrites = max_rewrites
        surface = len(query_features("")) * 2 + len(answer_features("", cut=False))
        # Similarities, a one-hot of what was tried and of the template, the share of steps used.
        self.size = surface + 3 + 2 * num_operators + 1

    async def observe_flow(self, state: EpisodeState) -> Observation:
        """The observation of `state`, when its texts are embedded."""
        return self.observation(state, await Encode(self.texts(state)))

    def texts(self, state: EpisodeState) -> tuple[str, str, str]:
        """The texts whose embeddings an observation needs."""
        return state.original, state.current, state.answer

    def observation(self, state: EpisodeState, vectors: Vectors) -> Observation:
        """What the policy sees of `state`, whose `texts` have these embeddings."""
        original, current, answer = vectors
        tried = np.zeros(self.num_operators)
        tried[list(state.tried)] = 1.0
        template = np.zeros(self.num_operators)
        if state.template is not None:
            template[state.template] = 1.0
        asked = np.array(query_features(state.original))
        # What follows the first answer is 0 until something was rewritten.
        changed = np.array(query_features(state.current)) - asked
        on_point = np.dot(original, answer)
        observation = np.concatenate(
            [
                asked,
                answer_features(state.answer, cut=state.answer_cut),
                [on_point],
                changed,
                [np.dot(current, answer) - on_point, 1.0 - np.dot(original, current)],
                tried,
                template,
                [1.0 - state.steps_left / self.max_rewrites],
            ]
        )
        # A cosine can exceed 1 by a rounding error.
        return np.clip(observation, -1.0, 1.0).astype(np.float32)

    def action_mask(self, state: EpisodeState) -> ActionMask:
        """True for stop and for the operators not yet tried in this episode."""
        mask = np.ones(self.num_actions, bool)
        mask[[number + 1 for number in state.tried]] = False
        return mask
