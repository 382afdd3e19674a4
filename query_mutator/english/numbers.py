"""Numbers written in words, as digits."""

from __future__ import annotations

import re

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
VALUES = {word: value for value, word in enumerate(_SMALL.split())}
VALUES |= {word: 10 * tens for tens, word in enumerate(_TENS.split(), 2)}
VALUES["fourty"] = 40
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
PHRASES = (
    (re.compile(r"\bhalf[ -]a[ -]dozen\b", re.IGNORECASE), "6"),
    (re.compile(r"\b(?:a|one)[ -]dozen\b", re.IGNORECASE), "12"),
    (re.compile(r"\b(?:nought|naught)\b", re.IGNORECASE), "0"),
)
UNIT = (
    r"(?:lungs?|legs?|eyes?|days?|weeks?|months?|years?|hours?|minutes?|seconds?|met(?:er|re)s?|"
    r"kilomet(?:er|re)s?|cent(?:s|imet(?:er|re)s?)?|dollars?|euros?|pounds?|grams?|lit(?:er|re)s?|"
    r"degrees?|percent|strings?|players?|sides?)"
)
ONE = re.compile(rf"\bone(?= {UNIT}\b(?! of the\b))", re.IGNORECASE)
"""Else "one" is seldom a number."""
HALF = re.compile(r"\b(\d{1,3}|one) and (?:a|1) half\b", re.IGNORECASE)
CLOCK = re.compile(r"\b(?:a )?(half|quarter)(?: an hour)? (past|to) (1[0-2]|[1-9]|one)\b")
MINUTES = {("half", "past"): 30, ("half", "to"): 30, ("quarter", "past"): 15, ("quarter", "to"): 45}
_WORD = "|".join(sorted([*VALUES, *SCALES], key=len, reverse=True))
_AND = r"(?:(?<=hundred)|(?<=thousand)|(?<=million))[ -]and[ -]"
_NUMBER = re.compile(
    r"(?<!\w)(?:(?:a|\d+(?:\.\d+)?)[ -](?=hundred|thousand|million|billion))?"
    rf"(?:{_WORD})(?:(?:[ -]|{_AND})(?:{_WORD}))*(?!\w)",
    re.IGNORECASE,
)


def fold_numbers(text: str) -> str:
    """The text with numbers in digits; "one" stays, unless a unit follows.

    >>> fold_numbers("thirty-three, half a dozen, three hundred and sixty five, one of 2 million")
    '33, 6, 365, one of 2000000'
    >>> fold_numbers("seventeen hundred and eighty-nine is nineteen eighty-four, one two three")
    '1789 is 1984, 1 2 3'
    >>> fold_numbers("half past five, quarter to one, a quarter past six")
    '5:30, 12:45, 6:15'
    >>> fold_numbers("two and a half, one day, a hundred, 2.5 million, twenty sixteen")
    '2.5, 1 day, 100, 2500000, 2016'
    """
    for phrase, digits in PHRASES:
        text = phrase.sub(digits, text)
    text = CLOCK.sub(_clock, ONE.sub("1", _NUMBER.sub(lambda match: _folded(match[0]), text)))
    return HALF.sub(lambda match: f"{match[1].replace('one', '1')}.5", text)


LARGEST = 1e15
MOST_WORDS = 16
"""Larger numbers and longer runs of number words are nobody's answer."""


def _clock(match: re.Match[str]) -> str:
    hour = int(match[3].replace("one", "1"))
    if match[2] == "to":
        hour = hour - 1 or 12
    return f"{hour}:{MINUTES[match[1], match[2]]}"


def _folded(written: str) -> str:
    words = [word for word in re.split(r"[ -]+", written.lower()) if word != "and"]
    if len(words) > MOST_WORDS:
        return written
    if words == ["one"]:
        return written
    numbers: list[float] = []
    total = current = 0.0
    last = -1  # the value of the word before, where it was a plain one
    for word in words:
        if word in SCALES:
            scale = SCALES[word]
            if scale == SCALES["hundred"]:
                current = (current or 1) * scale
            else:
                total, current = total + (current or 1) * scale, 0.0
            last = -1
            continue
        value = VALUES.get(word)
        if value is None:
            current = 1.0 if word == "a" else min(float(word), 2 * LARGEST)
            continue
        if last >= 10 and value >= 10:
            current *= 100  # nineteen eighty-four
        elif last >= 0 and not (last >= 20 and 0 < value < 10):
            numbers.append(total + current)
            total = current = 0.0
        current += value
        last = value
    numbers.append(total + current)
    if max(numbers) > LARGEST:
        return written
    return " ".join(f"{number:.15g}" for number in numbers)
