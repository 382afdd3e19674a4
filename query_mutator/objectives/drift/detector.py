"""How far a rewrite has drifted from what was asked, and what changed.

A small model over what `compared` finds and three cosines: a weight for each number and each word
put in or left out, and networks for what numbers mean together. `benchmarks.scoring.drift_learn`
makes its weights. They were learned on MiniLM: where another encoder is in use, the packaged one
is loaded beside it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.models.encoders import load_encoder
from query_mutator.objectives.drift.compared import compare
from query_mutator.objectives.drift.meanings import Meanings
from query_mutator.objectives.drift.pair import Compared, Pair
from query_mutator.objectives.drift.reasons import reason
from query_mutator.objectives.refusal.detector import PROBE, SAME_ENCODER

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

WEIGHTS_FILE = Path(__file__).with_name("weights.npz")
CALIBRATED = 0.2
"""The drift up to which a rewrite counts as asking the same; also the default of the flag."""
FOREIGN_SAME, FOREIGN_OTHER = 0.55, 0.05
"""Cosines that stand for a drift of 0 and 1 where the words are not English."""
REMEMBERED_PAIRS = 8192


@dataclass(frozen=True)
class Drift:
    """0 where the same is asked, up to 1 where surely something else is; and what changed."""

    value: float
    why: str


SAME = Drift(0.0, "the same words")
NOTHING = Drift(1.0, "nothing is asked")


class DriftDetector:
    """Compares rewrites with their questions, many at a time."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self._places = {str(name): place for place, name in enumerate(weights["names"])}
        self._weights = {
            name: np.asarray(weights[name], np.float32) for name in weights if name != "names"
        }
        self.meanings = Meanings(self._weights["mean"], self._weights["turn"])
        self.compared = functools.lru_cache(maxsize=REMEMBERED_PAIRS)(self._compared)

    def find(
        self, questions: Sequence[str], rewrites: Sequence[str], encode: Encode
    ) -> list[Drift]:
        """The drift of each rewrite from its question."""
        pairs = [
            self.compared(question, rewrite)
            for question, rewrite in zip(questions, rewrites, strict=True)
        ]
        to_weigh = [pair for pair, compared in pairs if isinstance(compared, Compared)]
        if not to_weigh:
            return [found for _, found in pairs if isinstance(found, Drift)]
        vectors = vectors_of(to_weigh, self._known(encode))
        return [
            self._drift(pair, found, vectors) if isinstance(found, Compared) else found
            for pair, found in pairs
        ]

    def texts_of(self, question: str, rewrite: str) -> tuple[str, ...]:
        """The texts that `find` will want embedded for one rewrite; none where words suffice."""
        pair, compared = self.compared(question, rewrite)
        return (PROBE, *texts_compared([pair])) if isinstance(compared, Compared) else ()

    def _compared(self, question: str, rewrite: str) -> tuple[Pair, Compared | Drift]:
        pair = Pair.of(question, rewrite)
        if question == rewrite or (pair.told and pair.same_words):
            return pair, SAME
        return pair, compare(pair, self.meanings) if pair.told else NOTHING

    def _drift(self, pair: Pair, compared: Compared, vectors: Mapping[str, Vectors]) -> Drift:
        cosines = cosine_numbers(pair, vectors)
        if pair.foreign:
            cosine = cosines["cos best"]
            value = (FOREIGN_SAME - cosine) / (FOREIGN_SAME - FOREIGN_OTHER)
            return Drift(min(1.0, max(0.0, value)), f"cosine of question and rewrite {cosine:.2f}")
        value = self._value(compared.numbers | cosines)
        if compared.kinds[1] == STATEMENT != compared.kinds[0] or not pair.same_signs:
            value = max(value, STATED)
        return Drift(value, reason(compared, value > CALIBRATED))

    def _value(self, numbers: Mapping[str, float]) -> float:
        """Row by row: in a product of matrices last bits depend on the number of rows."""
        weights = self._weights
        row = row_of(numbers, self._places)
        score = float(row @ weights["wide"])
        dense = (row[: weights["centre"].size] - weights["centre"]) / weights["scale"]
        dense = np.clip(dense, -MOST_SCALES, MOST_SCALES)
        for inner, inner_bias, outer in zip(
            weights["inner"], weights["inner_bias"], weights["outer"], strict=True
        ):
            score += float(np.maximum(dense @ inner + inner_bias, 0.0) @ outer)
        score += float(weights["bias"])
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, score))))

    def _known(self, encode: Encode) -> Encode:
        vector, probe = encode([PROBE])[0], self._weights["probe"]
        if vector.shape == probe.shape and np.dot(vector, probe) > SAME_ENCODER:
            return encode
        return _packaged_encoder().encode_each


STATEMENT, STATED = "statement", 0.6
"""An answer in the question's place is another text, however near its words; so are other signs."""
MOST_SCALES = 5.0
"""A number further from its mean counts as being so far."""
WORD_WEIGHT = 0.5
"""How much a single word weighs beside a number; under one penalty, scale matters."""


def row_of(numbers: Mapping[str, float], places: Mapping[str, int]) -> Vectors:
    """The numbers in the order of the weights; those that have none are left out."""
    row = np.zeros(len(places), np.float32)
    for name, value in numbers.items():
        if name in places:
            row[places[name]] = value * (WORD_WEIGHT if name[0] in "+-" else 1.0)
    return row


def vectors_of(pairs: Sequence[Pair], encode: Encode) -> dict[str, Vectors]:
    """The embeddings of the texts that are compared; of a rewrite, only the rewrite itself."""
    texts = texts_compared(pairs)
    return dict(zip(texts, encode(texts), strict=True))


def texts_compared(pairs: Sequence[Pair]) -> list[str]:
    """Each text that is compared, once."""
    compared = (
        text for pair in pairs for text in (pair.question, pair.spelt, pair.asking, pair.rewrite)
    )
    return list(dict.fromkeys(compared))


def cosine_numbers(pair: Pair, vectors: Mapping[str, Vectors]) -> dict[str, float]:
    """How near the rewrite is to the question, as typed, as spelt, and where it asks."""
    rewrite = vectors[pair.rewrite]
    typed, spelt, asking = (
        float(np.dot(vectors[text], rewrite)) for text in (pair.question, pair.spelt, pair.asking)
    )
    best = max(typed, spelt, asking)
    return {
        "cos best": best,
        "cos part": asking,
        "cos whole": max(typed, spelt),
        "cos far": max(0.0, 0.5 - best) * 2,
        "cos mid": max(0.0, 0.7 - best),
        "cos high": max(0.0, best - 0.85) * 3,
        "cos × long": best * pair.long,
    }


def load_detector(file: Path = WEIGHTS_FILE) -> DriftDetector:
    """The detector with the weights of a file."""
    with np.load(file, allow_pickle=False) as weights:
        return DriftDetector(weights)


shipped_detector = functools.cache(load_detector)
_packaged_encoder = functools.cache(load_encoder)
