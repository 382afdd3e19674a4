"""Words to look for, the sentences of a text, and how a question begins."""

from __future__ import annotations

import functools
import re

from query_mutator.base.weights import packaged_model_path

_WORD = re.compile(r"\w+")
FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a about again also am an and any are as ask asked asking at be been being but by can "
        "could did do does doing for from get had has have how i if in into is it its know like "
        "many may me might more much my now of on or our out please question should so some "
        "tell than that the their them then there these they this those to too um up us very "
        "want was we were what when where which while who whom whose why will with wonder "
        "wondering would you your"
    )
)
WH_WORDS = frozenset(_WORD.findall("what who whom whose which when where why how"))
AUXILIARIES = frozenset(
    _WORD.findall("is are was were am do does did can could will would should has have had")
)
LONGEST_QUESTION = 2000
"""Characters of a question with what is said around it; longer texts are documents."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_AUXILIARY_FIRST = re.compile(rf"\W*(?:{'|'.join(AUXILIARIES)})\b", re.IGNORECASE)


def words_in(text: str) -> frozenset[str]:
    """The words and signs of a list in one text, with blanks between."""
    return frozenset(text.split())


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text.

    >>> sentences("It is Lima. Lima lies\\non the coast.")
    ['It is Lima.', 'Lima lies', 'on the coast.']
    """
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def asks_yes_or_no(question: str) -> bool:
    """Whether a question begins as one that yes or no would answer.

    >>> asks_yes_or_no("Is a whale a fish?"), asks_yes_or_no("What is a fish?")
    (True, False)
    """
    return bool(_AUXILIARY_FIRST.match(question))


def content_words(text: str) -> set[str]:
    """The words that carry meaning, without the s of a plural.

    >>> sorted(content_words("What are the capitals of Peru?"))
    ['capital', 'peru']
    """
    words = {word.casefold() for word in _WORD.findall(text)} - FUNCTION_WORDS
    return {word.rstrip("s") or word for word in words}


@functools.cache
def common_words() -> frozenset[str]:
    """Common English words and names: the whole words in the vocabulary of the packaged MiniLM."""
    vocabulary = (packaged_model_path() / "vocab.txt").read_text(encoding="utf-8").split("\n")
    return frozenset(word for word in vocabulary if word.isalpha())
