"""Numbers written in words, as digits."""

from __future__ import annotations

import re

UNITS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split()
    )
}
TENS = {
    word: value * 10
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
TENS["fourty"] = 40
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
PHRASES = (
    (re.compile(r"\bhalf[ -]a[ -]dozen\b", re.I), "6"),
    (re.compile(r"\b(?:a|one)[ -]dozen\b", re.I), "12"),
    (re.compile(r"\b(?:nought|naught)\b", re.I), "0"),
)
_WORD = "|".join(sorted([*UNITS, *TENS, *SCALES], key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?<![\w])(?:(?:a|\d+(?:\.\d+)?)[ -](?=hundred|thousand|million|billion))?"
    rf"(?:{_WORD})(?:(?:[ -]|(?:(?<=hundred)|(?<=thousand)|(?<=million))[ -]and[ -])(?:{_WORD}))*"
    r"(?!\w)",
    re.I,
)


def fold_numbers(text: str) -> str:
    """The text with numbers in digits; a lone "one" stays, as it is seldom a number.

    >>> fold_numbers("thirty-three, half a dozen, three hundred and sixty five, one of 2 million")
    '33, 6, 365, one of 2000000'
    >>> fold_numbers("seventeen hundred and eighty-nine is nineteen eighty-four")
    '1789 is 1984'
    """
    for phrase, digits in PHRASES:
        text = phrase.sub(digits, text)
    return _NUMBER.sub(lambda match: _folded(match[0]), text)


def _folded(written: str) -> str:
    words = re.split(r"[ -]+|, ", written.lower())
    if words == ["one"]:
        return written
    parts: list[str] = []
    total = current = 0
    previous = ""
    for word in words:
        if word == "and":
            continue
        if word in SCALES:
            scale = SCALES[word]
            if scale == 100:
                current = (current or 1) * 100
            else:
                total, current = total + (current or 1) * scale, 0
        elif word == "a":
            current = 1
        elif word in UNITS or word in TENS:
            value = UNITS.get(word, TENS.get(word, 0))
            if previous in UNITS or (previous in TENS and (value >= 10 or value == 0)):
                if previous in UNITS and (10 <= UNITS[previous] or previous in TENS) and value >= 10:
                    current = current * 100 + value  # nineteen eighty-four
                    previous = word
                    continue
                if previous in TENS and value >= 10:
                    current = current * 100 + value  # twenty sixteen
                    previous = word
                    continue
                parts.append(str(total + current))
                total = current = 0
            current += value
        else:
            current = float(word) if "." in word else int(word)
        previous = word
    number = total + current
    parts.append(f"{number:g}" if isinstance(number, float) and not number.is_integer() else str(int(number)))
    return " ".join(parts)
