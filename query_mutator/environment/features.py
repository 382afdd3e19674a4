"""What can be read off a question and an answer without a model and without the reference."""

from __future__ import annotations

import math
import re

from query_mutator.english.words import AUXILIARIES, WH_WORDS, common_words
from query_mutator.objectives.refusal import opens_as_refusal

WORD = re.compile(r"[a-zA-Z]+")
"""Cut at apostrophes: both halves of a contraction are common words."""


def query_features(query: str) -> list[float]:
    """Length, share of misspelt or rare words, and form of a question, each between 0 and 1."""
    words = WORD.findall(query)
    lower = [word.casefold() for word in words]
    known = common_words()
    unknown = [word for word in lower if word not in known]
    first = lower[0] if lower else ""
    letters = [character for character in query if character.isalpha()]
    return [
        _squash(len(words), 12),
        _squash(len(query), 80),
        len(unknown) / max(1, len(words)),
        float(bool(unknown)),
        float(query.rstrip().endswith("?")),
        float(first in WH_WORDS),
        float(first in AUXILIARIES),
        float(any(word in WH_WORDS for word in lower[1:])),
        float(any(character.isdigit() for character in query)),
        float(query[:1].isupper()),
        sum(character.isupper() for character in letters) / max(1, len(letters)),
        _squash(sum(query.count(mark) for mark in ",;:"), 3),
    ]


def answer_features(answer: str, *, cut: bool) -> list[float]:
    """Length and kind of an answer, each between 0 and 1."""
    words = answer.split()
    distinct = len({word.casefold() for word in words})
    return [
        _squash(len(words), 30),
        float(opens_as_refusal(answer)),
        float(cut),
        distinct / max(1, len(words)),
        float(any(character.isdigit() for character in answer)),
        float("?" in answer),
    ]


def _squash(value: float, typical: float) -> float:
    return 1.0 - math.exp(-value / typical)
