"""Tasks of one step whose worth is known for every action: to see how fast something learns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from query_mutator.data import Question
from query_mutator.environment.episodes import EpisodeState, EpisodeView, opening_state
from query_mutator.environment.features import query_features
from query_mutator.models.encoders import Encoder, load_encoder
from query_mutator.objectives.refusal import opens_as_refusal
from query_mutator.operators import load_operators

NOISE = 0.2
"""Deviation of a reward around the worth of its action."""
BASE_SPREAD = 0.1
EFFECT_SPREAD = 0.2
EFFECT_SHARE = 0.5
"""Share of the pairs of operator and trait in which the trait matters."""
REFUSED_SHARE = 0.25
CUT_SHARE = 0.25


@dataclass(frozen=True)
class Judged:
    """What the choices of a policy are worth on held-out contexts."""

    value: float
    left_alone: float
    """Share of the contexts in which it changes nothing."""


@dataclass(frozen=True)
class Task:
    """Contexts with the worth of every action in each of them; action 0 changes nothing."""

    observations: npt.NDArray[np.float32]
    worth: npt.NDArray[np.float64]
    noise: float
    train: npt.NDArray[np.int64]
    heldout: npt.NDArray[np.int64]
    in_turns: bool = False
    """Whether environments take turns through one order of the contexts, as the product's do; else
    each has an order of its own."""

    @property
    def num_actions(self) -> int:
        return self.worth.shape[1]

    @property
    def random_value(self) -> float:
        """What random actions are worth on the held-out contexts."""
        return float(self.worth[self.heldout].mean())

    @property
    def best_value(self) -> float:
        """What the best action of each held-out context is worth: the contextual optimum."""
        return float(self.worth[self.heldout].max(1).mean())

    def judged(self, actions: Sequence[int] | npt.NDArray[np.int64]) -> Judged:
        """What `actions`, one for each held-out context, are worth."""
        value = float(self.worth[self.heldout, actions].mean())
        return Judged(value, float((np.asarray(actions) == 0).mean()))

    def share_of_gap(self, value: float) -> float:
        """0 where a value is that of random actions, 1 where it is the optimum."""
        return (value - self.random_value) / (self.best_value - self.random_value)


def simulated_task(seed: int, questions: Sequence[Question], observed: Observed) -> Task:
    """Operators whose worth depends on traits of the question and of its first answer.

    The traits can be read off the text: misspelt words, length, digits, a question mark, a first
    answer that refuses or is cut. How much each matters to which operator is drawn
    from `seed`.
    """
    generator = np.random.default_rng(seed)
    num_operators = len(load_operators())
    traits = observed.traits
    base = generator.normal(0, BASE_SPREAD, num_operators)
    effects = generator.normal(0, EFFECT_SPREAD, (traits.shape[1], num_operators))
    effects *= generator.random(effects.shape) < EFFECT_SHARE
    worth = np.zeros((len(questions), num_operators + 1))
    worth[:, 1:] = base + (traits - traits.mean(0)) @ effects
    return Task(observed.observations, worth, NOISE, *split_rows(questions))


@dataclass(frozen=True)
class Observed:
    """What the policy sees of each question, and the traits that decide."""

    observations: npt.NDArray[np.float32]
    traits: npt.NDArray[np.float64]


def observe(questions: Sequence[Question], encoder: Encoder | None = None) -> Observed:
    """The first observation of an episode of each question, with a made-up first answer."""
    encoder = encoder or load_encoder()
    view = EpisodeView(len(load_operators()), 1)
    states = [_opening(question) for question in questions]
    encoder.encode_each([text for state in states for text in (state.original, state.answer)])
    traits = np.array([_traits(state) for state in states])
    return Observed(observations_of(states, view, encoder), traits)


def observations_of(
    states: Sequence[EpisodeState], view: EpisodeView, encoder: Encoder
) -> npt.NDArray[np.float32]:
    """What the policy sees of each state: a row for each."""
    return np.stack(
        [view.observation(state, encoder.encode_each(view.texts(state))) for state in states]
    )


def split_rows(
    questions: Sequence[Question],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The row numbers of the training and of the held-out questions."""
    train = np.array([question.split == "train" for question in questions])
    return np.flatnonzero(train), np.flatnonzero(~train)


def _opening(question: Question) -> EpisodeState:
    draw = hashlib.sha256(question.id.encode()).digest()
    refused, cut = draw[0] / 256 < REFUSED_SHARE, draw[1] / 256 < CUT_SHARE
    answer = "I'm sorry, but I can't help with that." if refused else question.reference
    if cut and not refused:
        answer = " ".join(answer.split()[:-1])
    return opening_state(question.question, answer, cut=cut and not refused, max_rewrites=1)


def _traits(state: EpisodeState) -> list[float]:
    words, _, _, misspelt, mark, *_ = query_features(state.original)
    return [
        misspelt,
        mark,
        words,
        float(any(character.isdigit() for character in state.original)),
        float(opens_as_refusal(state.answer)),
        float(state.answer_cut),
    ]
