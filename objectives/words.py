"""The sentences of a text, and its words that carry meaning."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a about again also am an and any are as ask asked asking at be been being but by can "
        "could did do does doing for from get had has have how i if in into is it its know like "
        "many may me might more much my now of on or our out please question should so some "
        "tell than that the their them then there these they this those to too um up us very "
        "want was we were what when where which while who whom whose why will with wonder "
        "wondering would you your"
    )
)


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text.

    >>> sentences("It is Lima. Lima lies\\non the coast.")
    ['It is Lima.', 'Lima lies', 'on the coast.']
    """
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def content_words(text: str) -> set[str]:
    """The words that carry meaning, without the s of a plural.

    >>> sorted(content_words("What are the capitals of Peru?"))
    ['capital', 'peru']
    """
    words = {word.casefold() for word in _WORD.findall(text)} - _FUNCTION_WORDS
    return {word.rstrip("s") or word for word in words}
