"""Puts what was typed like a telegram as a question."""

from __future__ import annotations

import re

from query_mutator.english.words import AUXILIARIES, WH_WORDS

WORD = re.compile(r"[^\W_]+")
"""Cut at apostrophes: `what's` has its `what`."""
MOST_WORDS = 8
"""Longer texts are sentences that only lack a question mark."""
VERBS = AUXILIARIES | frozenset(
    WORD.findall(
        "be may might must shall isn aren wasn weren don doesn didn couldn wouldn shouldn hasn "
        "haven hadn won name tell give list spell define explain calculate convert say write "
        "find show describe translate recommend compare suggest count guess solve help"
    )
)
SPEAKERS = frozenset(WORD.findall("i im ive you u we they he she it my your our their me us there"))
ASKED_FOR = frozenset(
    WORD.findall(
        "capital currency symbol opposite plural singular tense synonym antonym meaning author "
        "inventor president language population abbreviation formula number colour color name "
        "year date time weekday month height length weight speed distance temp temperature "
        "command shortcut first last half biggest largest smallest longest shortest tallest "
        "highest deepest fastest slowest oldest hottest coldest nearest ph term word"
    )
)
"""What people ask for in a word. Other texts without a verb may be a greeting or a title."""
WITHOUT_ARTICLE = frozenset(WORD.findall("a an the half"))


def ask_in_full(question: str) -> str:
    """A few words that ask for something become a question; everything else stays.

    >>> ask_in_full("capital of Spain??"), ask_in_full("currency India")
    ('What is the capital of Spain?', 'What is the currency of India?')
    >>> ask_in_full("What's the capital of Spain?"), ask_in_full("good morning")
    ("What's the capital of Spain?", 'good morning')
    """
    words = [word.casefold() for word in WORD.findall(question)]
    plain = question.isascii() and not any(sign in question for sign in "0123456789=+*/")
    if not plain or not 2 <= len(words) <= MOST_WORDS:
        return question
    if set(words) & (WH_WORDS | SPEAKERS) or set(words[:-1]) & VERBS or words[-1] in AUXILIARIES:
        return question
    if not {words[0], words[1], words[-1]} & ASKED_FOR:
        return question
    start = "What is" if words[0] in WITHOUT_ARTICLE else "What is the"
    text = question.strip().rstrip("?!. ")
    if len(words) == 2 and text.split()[-1][:1].isupper():
        text = text.replace(" ", " of ", 1)
    return f"{start} {text}?"
