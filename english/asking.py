"""Keeps the part of a run-on text that asks."""

from __future__ import annotations

import re

from english.words import WH_WORDS

POINTS_BACK = frozenset(
    "it its it's that this these those they them their theyre there then he she him his her hers "
    "one ones such same former latter total altogether left still remaining again".split()
)
EXACT = re.compile(
    r"[\d\"“‘]|\b'|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|dozen)\b",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(
    r"(?:[,;.:!?]|\b(?:so|and|but|now|then|asks?|wondering))\s*$", re.IGNORECASE
)
WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
FEWEST_WORDS = 4
STORY_WORDS = 4
"""Fewer words before the question are part of it."""
LONG_WORD = 4
"""Shorter words are in every clause."""


def keep_question(question: str) -> str:
    """The clause that asks, without the story before it; all of it where the story may be needed.

    It may be where the clause points back (`it`, `that`, a word of the story) or the story holds a
    number or a quotation.

    >>> keep_question("we missed the bus and it rained, so what is the capital of peru")
    'what is the capital of peru'
    >>> keep_question("a shop had 31 cups and sold 28, how many cups does the shop have")
    'a shop had 31 cups and sold 28, how many cups does the shop have'
    >>> keep_question("my son has a fluffy yellow bird, what is that called")
    'my son has a fluffy yellow bird, what is that called'
    """
    places = [match.start() for match in WORD.finditer(question) if _asks(match.group())]
    if places and not WORD.search(question[: places[0]]):
        return question
    for start in reversed(places):
        story, clause = question[:start], question[start:]
        if CLAUSE_END.search(story) and len(WORD.findall(clause)) >= FEWEST_WORDS:
            return question if _needed(story, clause) else clause
    return question


def _asks(word: str) -> bool:
    return word.casefold() in WH_WORDS


def _needed(story: str, clause: str) -> bool:
    told = [word.casefold() for word in WORD.findall(story)]
    asked = {word.casefold() for word in WORD.findall(clause)}
    if len(told) < STORY_WORDS or EXACT.search(story) or asked & POINTS_BACK:
        return True
    return any(len(word) >= LONG_WORD and word in asked for word in told)
