"""An answer as numbers: embeddings, counts of rules and words, and hashed words."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from query_mutator.english.words import content_words
from query_mutator.objectives.refusal.rules import (
    declining,
    plain_sentences,
    turns_round,
    without_markup,
    worded_sentences,
)

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

BUCKETS = 16384
COUNTED = 0.5
"""How much a count weighs beside embeddings of unit length; under one penalty, scale matters."""
MANY_WORDS = 40

_TOKEN = re.compile(r"[\w']+|[?!.]")
_LIST = re.compile(r"\*\*|^\s*(?:-|\d+\.) ", re.MULTILINE)
_QUOTATION = re.compile(r"""^["'«]|["'»]\.?$""")


def dense_features(questions: Sequence[str], answers: Sequence[str], encode: Encode) -> Vectors:
    """A row for each answer: embeddings of the whole, its first and last sentence; counts."""
    texts = [without_markup(answer) for answer in answers]
    said = [worded_sentences(text) for text in texts]
    vectors = encode([*questions, *texts, *(s[0] for s in said), *(s[-1] for s in said)])
    asked, whole, first, last = np.split(vectors, 4)
    counts = [
        [
            float(np.dot(asked[row], whole[row])),
            *_declined(texts[row]),
            *_told(question, texts[row]),
        ]
        for row, question in enumerate(questions)
    ]
    return np.hstack([whole, first, last, COUNTED * np.array(counts, np.float32)])


def hashed_words(answers: Sequence[str]) -> Vectors:
    """A row for each answer: 1 + log of how often its words and pairs of words fall in a bucket."""
    rows = np.zeros((len(answers), BUCKETS), np.float32)
    for row, answer in zip(rows, answers, strict=True):
        tokens = _TOKEN.findall(" ".join(plain_sentences(without_markup(answer))))
        pairs = [f"{left} {right}" for left, right in pairwise(tokens)]
        counts = Counter(zlib.crc32(token.encode()) % BUCKETS for token in tokens + pairs)
        row[list(counts)] = 1.0 + np.log(list(counts.values()))
    return rows


def weighted(words: Vectors, rarity: Vectors) -> Vectors:
    """Hashed words times their rarity, each row of unit length."""
    rows = words * rarity
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def _declined(text: str) -> list[float]:
    """Where it declines, and how much is said before and after."""
    words = plain_sentences(text)
    phrases = [declining(sentence) for sentence in words]
    places = [place for place, phrase in enumerate(phrases) if phrase]
    if not places:
        return [0.0] * 7
    last = places[-1]
    before, after = " ".join(words[:last]), " ".join(words[last + 1 :])
    turns = turns_round(f"{words[last].partition(phrases[last])[2]} {after}")
    lengths = [min(1.0, len(text.split()) / MANY_WORDS) for text in (before, after)]
    return [bool(phrases[0]), bool(phrases[-1]), 1.0, len(places) / len(words), turns, *lengths]


def _told(question: str, text: str) -> list[float]:
    """What is told that was not in the question, and the shape of the text."""
    asked, content = content_words(question), content_words(text)
    new = content - asked
    figures = set(re.findall(r"\d+", text)) - set(re.findall(r"\d+", question))
    said = worded_sentences(text)
    return [
        bool(figures),
        len(new) / max(1, len(content)),
        math.exp(-len(new) / 5),
        len(content & asked) / max(1, len(asked)),
        min(len(text.split()), 100) / 100,
        sum(sentence.rstrip().endswith("?") for sentence in said) / len(said),
        bool(_LIST.search(text)),
        "`" in text,
        bool(_QUOTATION.search(text)),
    ]
