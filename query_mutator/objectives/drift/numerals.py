"""Numbers in a text, in digits or in words."""

from __future__ import annotations

import functools
import re

from query_mutator.english import numbers

listed = re.compile(r"\S+").findall
"""The words of a list that is written as a text."""
NUMBERS = {word: float(value) for word, value in numbers.VALUES.items()}
SCALES = {word: float(scale) for word, scale in numbers.SCALES.items()}
RANKS = {
    "first": 1.0, "second": 2.0, "third": 3.0, "fourth": 4.0, "fifth": 5.0, "sixth": 6.0,
    "seventh": 7.0, "eighth": 8.0, "ninth": 9.0, "tenth": 10.0, "twelfth": 12.0, "half": 0.5,
    "quarter": 0.25, "double": 2.0, "twice": 2.0, "triple": 3.0, "thrice": 3.0, "dozen": 12.0,
}  # fmt: skip
"""Ordinals, fractions and multiples."""
COUNTED = {"both": 2.0, "pair": 2.0, "couple": 2.0, "single": 1.0, "once": 1.0}
_ONE_AND_A_HALF = re.compile(r"\b(?:an?|one) (\w+) and a half\b")
_AND_A_HALF = re.compile(r"\b(\d+) and a half\b")
_BEFORE_A_HALF = re.compile(rf"\b({'|'.join(NUMBERS)})(?= and a half\b)")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[a-z]+")
_DIGITS = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(?:st|nd|rd|th|s)?")


def number_of(word: str) -> float | None:
    """The value of a word that is a number.

    >>> number_of("1,000"), number_of("20th"), number_of("fourty"), number_of("seventh")
    (1000.0, 20.0, 40.0, None)
    """
    found = _DIGITS.fullmatch(word.replace(",", ""))
    return float(found[1]) if found else NUMBERS.get(word)


@functools.lru_cache(maxsize=8192)
def numbers_in(text: str) -> tuple[float, ...]:
    """The numbers of a text.

    >>> numbers_in("Twenty-one of 1,500 in three hundred years, the second half")
    (21.0, 1500.0, 300.0, 2.0, 0.5)
    """
    plain = _ONE_AND_A_HALF.sub(r"1.5 \1", text.casefold())
    tokens = _TOKEN.findall(_AND_A_HALF.sub(r"\1.5", _in_digits(plain)))
    found: list[float] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token[0].isdigit():
            value = _written(token)
            scale = SCALES.get(tokens[place + 1]) if place + 1 < len(tokens) else None
            found.append(value * (scale or 1.0))
            place += 2 if scale else 1
        elif token in NUMBERS or token in SCALES:
            value, place = _spoken(tokens, place)
            found.append(value)
        else:
            if token in RANKS or token in COUNTED:
                found.append(RANKS.get(token, COUNTED.get(token, 0.0)))
            place += 1
    return tuple(found)


def _written(token: str) -> float:
    plain = re.sub(r",(?=\d{3}\b)", "", token[:30]).replace(",", ".").replace(":", ".")
    try:
        return float(plain)
    except ValueError:  # a date, or a version: 1.2.2000
        return float(re.sub(r"\D", "", plain))


def _spoken(tokens: list[str], place: int) -> tuple[float, int]:
    """The value of the words of a number, and the place after them."""
    value = 0.0
    while place < len(tokens):
        token = tokens[place]
        if token in SCALES:
            value = max(value, 1.0) * SCALES[token]
        elif token in NUMBERS:
            more = NUMBERS[token]
            # "twenty one" and "hundred one" are a number, "two four" are two.
            if value % 100 and not (20 <= value % 100 <= 90 and value % 10 == 0 and more < 10):
                break
            if 0 < value < 20:
                break
            value += more
        elif not (
            token == "and"
            and value >= 100
            and tokens[place + 1 : place + 2]
            and tokens[place + 1] in NUMBERS
        ):
            break
        place += 1
    return value, place


def _in_digits(text: str) -> str:
    """The text with the number before "and a half" in digits."""
    return _BEFORE_A_HALF.sub(lambda match: f"{NUMBERS[match[0]]:.0f}", text)
