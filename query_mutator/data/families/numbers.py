"""Numbers in words."""

from __future__ import annotations

import re

SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
TENS = ("-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth", "twenty": "twentieth", "thirty": "thirtieth",
}  # fmt: skip
SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


def spellings(number: int) -> tuple[str, ...]:
    """How an answer may write a whole number below 10,000, digits first.

    >>> spellings(42)
    ('42', 'forty-two', 'forty two')
    >>> spellings(120)
    ('120', 'one hundred twenty', 'one hundred and twenty', 'a hundred twenty', \
'a hundred and twenty')
    """
    if number < 1000:
        return (str(number), *_words(number))
    return (str(number), f"{number:,}".replace(",", " "), *_words(number))


def year_spellings(year: int) -> tuple[str, ...]:
    """How an answer may write a year.

    >>> year_spellings(2024)
    ('2024', 'twenty twenty-four', 'twenty twenty four')
    """
    century, rest = divmod(year, 100)
    if rest < 10:
        return (str(year),)
    return (str(year), *(f"{_words(century)[0]} {words}" for words in _words(rest)))


def ordinals(number: int) -> tuple[str, ...]:
    """How an answer may write the day of a month.

    >>> ordinals(22)
    ('22nd', 'twenty-second', 'twenty second')
    """
    suffix = "th" if number // 10 == 1 else SUFFIXES.get(number % 10, "th")
    words = (re.split(r"(?<=[- ])", text) for text in _words(number))
    named = ("".join([*tens, ORDINALS.get(last, f"{last}th")]) for *tens, last in words)
    return (f"{number}{suffix}", *named)


def _words(number: int) -> list[str]:
    if number < 20:
        return [SMALL[number]]
    if number < 100:
        tens, ones = divmod(number, 10)
        return [f"{TENS[tens]}{dash}{SMALL[ones]}" for dash in "- "] if ones else [TENS[tens]]
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    count, rest = divmod(number, size)
    heads = [f"{SMALL[count]} {name}"] + ([f"a {name}"] if count == 1 else [])
    if not rest:
        return heads
    links = (" ", " and ") if rest < 100 else (" ",)
    words = [f"{head}{link}{tail}" for head in heads for tail in _words(rest) for link in links]
    if size == 1000 and rest % 100 == 0:
        words += [f"{hundreds} hundred" for hundreds in _words(number // 100)]
    return words
