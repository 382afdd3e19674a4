"""The words of an answer, and which of them say what the question did not."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from query_mutator.english.facts.mentions import Written, slips, written
from query_mutator.english.words import words_in

TOKEN = re.compile(r"\d+(?:[.:]\d+)*(?!\w)|[^\W_]+(?:'[^\W_]+)?|[^\w\s]|\n")
OPENS_CLAUSE = words_in(
    ", : ( ) – — which who whom whose where when because since although though while whereas "
    "unlike as if being having but so with until before after than thus therefore hence and "
    "following"
)
ENDS = frozenset((".", "!", "?", "\n", ";", "…"))
ENDINGS = ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s", "e", "y")
LONG_ENOUGH = 5
"""Letters of a word that is known with a slip."""


@dataclass(frozen=True)
class Token:
    """A word, number or sign of a text and where it stands."""

    text: str
    raw: str
    start: int
    end: int
    sentence: int
    clause: int
    """Counted through the whole text: a pause or a subordinating word begins another."""
    content: bool
    """Whether it carries meaning."""
    new: bool
    """Whether it says what neither the question nor the reference says."""


@functools.cache
def said_around() -> frozenset[str]:
    """The words that an answer is put in."""
    text = Path(__file__).with_name("said_around.txt").read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() if line[:1] != "#" for word in line.split())


def tokens_of(text: Written, start: int, known: frozenset[str]) -> list[Token]:
    """The tokens of an answer from `start` on; `known` are words that say nothing of their own."""
    found: list[Token] = []
    sentence = clause = 0
    around = said_around()
    for match in TOKEN.finditer(text.low, start):
        word = match[0]
        clause += word in OPENS_CLAUSE
        content = word[0].isalnum() and word not in around
        new = content and not is_among(word, known)
        raw = text.raw[match.start() : match.end()]
        found.append(Token(word, raw, *match.span(), sentence, clause, content, new))
        if word in ENDS and not _is_initial(text.low, found):
            sentence, clause = sentence + 1, clause + 1
    return found


def _is_initial(low: str, tokens: Sequence[Token]) -> bool:
    """Whether the last token is a point within a name or a file's name."""
    if tokens[-1].text != ".":
        return False
    following = low[tokens[-1].end : tokens[-1].end + 1]
    if following and not following.isspace():
        return True
    return len(tokens) > 2 and len(tokens[-2].text) == 1 and tokens[-2].raw.isupper()


@functools.lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The word without an ending.

    >>> stem("baking"), stem("bakes"), stem("is")
    ('bak', 'bak', 'is')
    """
    word = word.removesuffix("'s")
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@functools.lru_cache(maxsize=16384)
def is_among(word: str, known: frozenset[str]) -> bool:
    """Whether a word, its stem or a slip of it is one of the known ones."""
    if word in known or stem(word) in known:
        return True
    if word.isdigit() or len(word) < LONG_ENOUGH:
        return False
    return any(
        abs(len(word) - len(one)) <= 1 and one[0] == word[0] and slips(word, one, 1) <= 1
        for one in known
        if len(one) >= LONG_ENOUGH
    )


@functools.lru_cache(maxsize=8192)
def words_of(text: str) -> frozenset[str]:
    """The words of a text and their stems."""
    words = {match[0] for match in TOKEN.finditer(written(text).low) if match[0][0].isalnum()}
    return frozenset(words | {stem(word) for word in words})
