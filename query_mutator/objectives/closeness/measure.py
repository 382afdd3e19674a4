"""Marks for how much of what a reference says beyond the question an answer gives.

Words, not sentences, are compared: the embedding of a sentence says what it is about, and an
answer without the point is about the same thing. The weights are those of `learn`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from query_mutator.models.encoders import load_encoder
from query_mutator.objectives.closeness.reference import Beyond, beyond_question
from query_mutator.objectives.closeness.saying import Saying, read_answer, saying_features

Encode = Callable[[Sequence[str]], npt.NDArray[np.float32]]

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
UNLIKELY, LIKELY = 0.05, 0.8
"""Probabilities that the point is given as the answer which count 0 and 1."""
LIKE_NOTHING, LIKE_THE_POINT = 0.2, 0.8
MOST_OF_IT = 0.7
"""Share of the weight of what is to be said that counts as all of it."""
BESIDE = 0.2
"""What the likeliest other word counts at most where the point is not said: there is no telling
a word for the same thing from a near miss."""
PROBE = ("breakfast", "lunch")
PROBE_COSINE, PROBE_TOLERANCE = 0.72, 0.03
"""The cosine of two words by the encoder that the weights were learned with."""
MOST_TARGETS = 3
WORDS_SHOWN = 6


@dataclass(frozen=True)
class Closeness:
    """Marks from 0 to 1, and why."""

    value: float
    why: str


@dataclass(frozen=True)
class LearnedWeights:
    """What `learn` has found: of the features of a reference's words and of how they are said."""

    point: tuple[float, ...]
    saying: tuple[float, ...]


@functools.cache
def load_weights(file: Path = WEIGHTS_FILE) -> LearnedWeights:
    """The shipped weights, or those of another file."""
    found = json.loads(file.read_text(encoding="utf-8"))
    return LearnedWeights(tuple(found["point"].values()), tuple(found["saying"].values()))


def find_closeness(
    questions: Sequence[str], references: Sequence[str], answers: Sequence[str], encode: Encode
) -> list[Closeness]:
    """The closeness of each answer to its reference.

    >>> from query_mutator.models.encoders import load_encoder
    >>> question, reference = "goose plural?", "The plural of goose is geese."
    >>> answers = ["The goose is a plural noun.", "geese"]
    >>> encode = load_encoder("minilm").encode
    >>> found = find_closeness([question] * 2, [reference] * 2, answers, encode)
    >>> [round(closeness.value, 1) for closeness in found]
    [0.0, 1.0]
    """
    weights = load_weights()
    sayings = [
        read_answer(answer, beyond_question(question, reference, weights.point))
        for question, reference, answer in zip(questions, references, answers, strict=True)
    ]
    likeness = likeness_to_the_point(sayings, encode)
    return [_marked(*pair, weights.saying) for pair in zip(sayings, likeness, strict=True)]


def likeness_to_the_point(sayings: Sequence[Saying], encode: Encode) -> list[dict[str, float]]:
    """For each answer the cosine of each of its other words and what was to be said."""
    wanted = [_targets(saying.beyond) if saying.compared else [] for saying in sayings]
    texts = [*(t for targets in wanted for t in targets), *(w for s in sayings for w in s.compared)]
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return [{} for _ in sayings]
    rows = dict(zip(distinct, known_encoder(encode)(distinct), strict=True))
    return [
        {
            word: max(float(rows[word] @ rows[target]) for target in targets)
            for word in said.compared
        }
        for said, targets in zip(sayings, wanted, strict=True)
    ]


def _targets(beyond: Beyond) -> list[str]:
    words = [beyond.words[place] for place in beyond.core]
    return list(dict.fromkeys([" ".join(words), *words[:MOST_TARGETS]]))


def known_encoder(encode: Encode) -> Encode:
    """The encoder itself, or the packaged one where another one is in use."""
    one, other = encode(PROBE)
    if abs(float(one @ other) - PROBE_COSINE) < PROBE_TOLERANCE:
        return encode
    return _packaged_encoder().encode_each


_packaged_encoder = functools.cache(load_encoder)


def _marked(saying: Saying, likeness: Mapping[str, float], weights: tuple[float, ...]) -> Closeness:
    if not saying.beyond.words:
        return Closeness(0.0, "the reference has no words to compare")
    if saying.point is None:
        return _without_the_point(saying, likeness)
    logit = float(saying_features(saying, dict(likeness)) @ np.array(weights))
    probability = 1.0 / (1.0 + np.exp(-logit))
    share = float(np.clip((probability - UNLIKELY) / (LIKELY - UNLIKELY), 0.0, 1.0))
    return Closeness(share * min(1.0, saying.covered / MOST_OF_IT), _why(saying, probability))


def _without_the_point(saying: Saying, likeness: Mapping[str, float]) -> Closeness:
    nearest = max(likeness, key=likeness.__getitem__, default="")
    cosine = likeness.get(nearest, 0.0)
    share = np.clip((cosine - LIKE_NOTHING) / (LIKE_THE_POINT - LIKE_NOTHING), 0.0, 1.0)
    beside = f" (nearest: {nearest})" if nearest else ""
    why = f"the reference adds: {_shown(saying.beyond)}; the answer does not say it{beside}"
    return Closeness(BESIDE * float(share), why)


def _why(saying: Saying, probability: float) -> str:
    beyond = saying.beyond
    said = {number for hit in saying.hits.values() for number in hit}
    missing = [beyond.words[place] for place in beyond.core if place not in said]
    if missing:
        has_not = ", ".join(missing[:WORDS_SHOWN])
        return f"the reference adds: {_shown(beyond)}; the answer has not: {has_not}"
    if probability < (UNLIKELY + LIKELY) / 2:
        return f"the reference adds: {_shown(beyond)}; the answer hardly gives it as its answer"
    return f"says what the reference adds: {_shown(beyond)}"


def _shown(beyond: Beyond) -> str:
    return ", ".join([beyond.words[place] for place in beyond.core][:WORDS_SHOWN])
