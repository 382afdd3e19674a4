"""Whether an answer is a refusal, of which kind, and by which words.

A linear model over what `features` makes of question and answer; `learn` makes its weights. It
was learned on MiniLM: where another encoder is in use, the packaged one is loaded beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from query_mutator.models.encoders import load_encoder
from query_mutator.objectives.refusal import rules
from query_mutator.objectives.refusal.features import (
    Encode,
    Vectors,
    dense_features,
    hashed_words,
    weighted,
)

WEIGHTS_FILE = Path(__file__).with_name("weights.npz")
KINDS = ("opening", "hedged", "evasive", "empty")
PROBE = "I'm sorry, but the capital of Peru is Lima."
"""Its embedding, kept with the weights, tells the encoder of the weights from others."""
SAME_ENCODER = 0.99
WORDS = 2.0
"""How much hashed words weigh beside an embedding."""


@dataclass(frozen=True)
class Refusal:
    """A kind ("" is an answer), the words that decided, and how probable a refusal is."""

    kind: str = ""
    phrase: str = ""
    probability: float = 0.0


class RefusalDetector:
    """Tells refusals from answers, many at a time."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self._weights = {name: np.asarray(weights[name], np.float32) for name in weights}

    def find(
        self, questions: Sequence[str], answers: Sequence[str], encode: Encode
    ) -> list[Refusal]:
        """For each answer whether it refuses, evades or says nothing.

        `opening`: it begins by declining. `hedged`: it declines after something else was said.
        `evasive`: nothing is declined, and nothing answered. `empty`: nothing is said.
        """
        if not answers:
            return []
        encode = self._known(encode)
        rows = self._rows(questions, answers, encode)
        found = []
        for question, answer, row in zip(questions, answers, rows, strict=True):
            text = rules.without_markup(answer)
            known = rules.known_probability(question, text)
            probability = self._probability(row) if known is None else known
            if probability < self._weights["threshold"]:
                found.append(Refusal(probability=probability))
                continue
            if known is not None:
                found.append(Refusal("empty", text[: rules.LONGEST_PHRASE], probability))
                continue
            # Row by row: in a product of matrices last bits depend on the number of rows.
            scores = [np.dot(row, weights) for weights in self._weights["kinds"]]
            kind = KINDS[int(np.argmax(scores + self._weights["kind_biases"]))]
            found.append(Refusal(kind, self._phrase(question, text, encode), probability))
        return found

    def _rows(self, questions: Sequence[str], answers: Sequence[str], encode: Encode) -> Vectors:
        words = weighted(hashed_words(answers), self._weights["rarity"])
        return np.hstack([dense_features(questions, answers, encode), WORDS * words])

    def _probability(self, row: Vectors) -> float:
        score = np.dot(row, self._weights["refusal"]) + self._weights["bias"]
        return float(1.0 / (1.0 + np.exp(-score)))

    def _phrase(self, question: str, text: str, encode: Encode) -> str:
        """The words that decline, or else the sentence that most looks like a refusal alone."""
        said = rules.worded_sentences(text)
        if phrase := next(filter(None, map(rules.declining, rules.plain_sentences(text))), ""):
            return phrase
        rows = self._rows([question] * len(said), said, encode)
        chosen = said[int(np.argmax([self._probability(row) for row in rows]))]
        return " ".join(chosen.split())[: rules.LONGEST_PHRASE]

    def _known(self, encode: Encode) -> Encode:
        vector, probe = encode([PROBE])[0], self._weights["probe"]
        if vector.shape == probe.shape and np.dot(vector, probe) > SAME_ENCODER:
            return encode
        return _packaged_encoder().encode_each


def load_detector(file: Path = WEIGHTS_FILE) -> RefusalDetector:
    """The detector with the weights of a file."""
    with np.load(file, allow_pickle=False) as weights:
        return RefusalDetector(weights)


_shipped_detector = functools.cache(load_detector)
_packaged_encoder = functools.cache(load_encoder)


def find_refusals(
    questions: Sequence[str], answers: Sequence[str], encode: Encode
) -> list[Refusal]:
    """What the shipped detector finds.

    >>> from query_mutator.models.encoders import load_encoder
    >>> encode = load_encoder("minilm").encode
    >>> find_refusals(["Why?"], ["I'm sorry, but I can't help with that."], encode)[0].phrase
    'i cannot help'
    """
    return _shipped_detector().find(questions, answers, encode)
