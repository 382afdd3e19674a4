"""Puts what was typed like a telegram as a question."""

from __future__ import annotations

import re

from english.words import AUXILIARIES, WH_WORDS

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
MOST_WORDS = 8
"""Longer texts are sentences that only lack a question mark."""
COMMANDS = frozenset(
    WORD.findall(
        "name tell give list spell define explain calculate convert say write find show describe "
        "translate compute add subtract multiply divide count guess solve complete finish help"
    )
)
SPEAKERS = frozenset(
    WORD.findall("i im ive id you u we they he she it my your our their me us there theres lets")
)
WITHOUT_ARTICLE = frozenset(WORD.findall("a an the my half one two three four five six ten"))


def ask_in_full(question: str) -> str:
    """A few words without a verb become a question; everything else stays.

    >>> ask_in_full("capital of Spain??")
    'What is the capital of Spain?'
    >>> ask_in_full("currency India?")
    'What is the currency of India?'
    >>> ask_in_full("name the capital of Spain"), ask_in_full("camel hump contains what")
    ('name the capital of Spain', 'camel hump contains what')
    """
    words = [word.casefold() for word in WORD.findall(question)]
    if not 2 <= len(words) <= MOST_WORDS or any(sign in question for sign in "0123456789=+*/"):
        return question
    if words[0] in COMMANDS or set(words) & (WH_WORDS | AUXILIARIES | SPEAKERS):
        return question
    start = "What is" if words[0] in WITHOUT_ARTICLE else "What is the"
    text = question.strip().rstrip("?!. ")
    if len(words) == 2 and text.split()[-1][:1].isupper():
        text = text.replace(" ", " of ", 1)
    return f"{start} {text}?"
