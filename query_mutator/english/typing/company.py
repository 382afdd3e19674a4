"""How likely a word is where it stands: by itself, and after the one before it."""

from __future__ import annotations

import functools
import math
from pathlib import Path

from query_mutator.english.spelling import WORDS_COUNTED, pair_counts, word_counts
from query_mutator.english.words import common_words

ASKED_FILE = Path(__file__).with_name("asked.txt")
"""Words and pairs of words in questions, with how often they were counted."""
START = "<s>"
"""Stands before the first word of a question."""
IN_PAIRS, IN_QUESTIONS, IN_PAIRS_OF_QUESTIONS = 0.45, 0.2, 0.2
"""Shares of a word's probability that come from the word before, from questions, and from both."""
COMMON_UNCOUNTED, UNCOUNTED = 1_000_000, 30_000
"""Counts of words that are in no list of counts: names that people know, and others."""


@functools.lru_cache(maxsize=65536)
def surprise(word: str, before: str = "") -> float:
    """The negative log probability of a word after another.

    >>> surprise("is", "what") < surprise("is", "cat") < surprise("colander", "cat")
    True
    """
    count = count_of(word)
    if count == UNCOUNTED:
        return 0.0
    asked, asked_pairs, all_asked = _asked()
    share = (1 - IN_PAIRS - IN_QUESTIONS - IN_PAIRS_OF_QUESTIONS) * count / WORDS_COUNTED
    share += IN_QUESTIONS * asked.get(word, 0) / all_asked
    if before:
        if together := pair_counts().get(f"{before} {word}", 0):
            share += IN_PAIRS * together / max(count_of(before), together)
        if together := asked_pairs.get(f"{before} {word}", 0):
            share += IN_PAIRS_OF_QUESTIONS * together / max(asked[before], 10)
    return -math.log(share)


@functools.lru_cache(maxsize=65536)
def count_of(word: str) -> int:
    """How often a word was counted."""
    counted = word_counts().get(word, 0)
    return counted or (COMMON_UNCOUNTED if word in common_words() else UNCOUNTED)


def is_asked(word: str) -> bool:
    """Whether people use a word in questions."""
    return word in _asked()[0]


@functools.cache
def _asked() -> tuple[dict[str, int], dict[str, int], int]:
    words: dict[str, int] = {}
    pairs: dict[str, int] = {}
    for line in ASKED_FILE.read_text(encoding="utf-8").splitlines():
        term, count = line.rsplit(" ", 1)
        (pairs if " " in term else words)[term] = int(count)
    return words, pairs, sum(words.values())
