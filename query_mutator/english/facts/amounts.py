"""The number that an answer comes to."""

from __future__ import annotations

import re

from query_mutator.english.facts.opening import LEADS
from query_mutator.english.facts.tokens import is_among, stem, words_of
from query_mutator.english.facts.units import is_another_unit

NUMBER = re.compile(
    r"(?<![\w.])(?<!\s-)(?<!^-)[$€£]?(\d+(?:[.:]\d+|h\d\d)*)(?![a-z]*\d)(?!(?:st|nd|rd|th)\b)"
)
YEAR = re.compile(r"[12]\d{3}")
EXPLAINS = re.compile(
    r"[,;]?\s+(?:because|since|(?<!same )(?<!much )(?<!many )(?<!long )(?<!far )"
    r"as(?! (?:much|many|long|far)\b)|for|just like|given that|considering)\s+[^.!?\n]*"
)
CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|accordingly|that (?:is|means|makes|leaves|gives)|"
    r"that's|which (?:is|makes|gives|leaves)|total (?:is|to|of)|in total|altogether|in all|"
    r"in other words|that is to say|"
    r"answer (?:is|:)|makes|gives|leaving|result is|you get|equals|correction)\b|\bi\.e\.|=|->|→|⇒"
)
CONVERTS = re.compile(r"[^=+*/×÷]*=[^=+*/×÷]*")
ASIDE = re.compile(r"\bunlike\b[^,.!?\n]*(?:,\s*(?:which|who|whose)\b[^,.!?\n]*)?,")
"""What is set apart: "unlike insects, which have six,"."""
UNIT = re.compile(r"[\s-]*([a-z]+)")
CONTRASTS = re.compile(r"\b(?:but|while|whereas)\b")


def plain_number(text: str) -> str:
    """The number without an empty fraction; 5h30 is 5:30.

    >>> plain_number("8.00"), plain_number("8.50"), plain_number("5h30")
    ('8', '8.50', '5:30')
    """
    text = text.replace("h", ":")
    whole, point, after = text.partition(".")
    return whole if point and "." not in after and not after.strip("0") else text


def without_thousands(number: str) -> str:
    """The number without points between thousands.

    >>> without_thousands("8.000"), without_thousands("1.5")
    ('8000', '1.5')
    """
    return re.sub(r"\.(?=\d{3}(?!\d))", "", number)


def numbers_in(text: str) -> list[str]:
    """The numbers of a text in small letters."""
    return [plain_number(match) for match in NUMBER.findall(text)]


def number_claimed(
    low: str, known: frozenset[str], words: frozenset[str] = frozenset(), years: bool = False
) -> str:
    """The number that an answer comes to, or ""; those of the question are said on the way.

    >>> number_claimed("12 apples, 5 of them eaten: 12 - 5 = 7", frozenset(("12", "5")))
    '7'
    >>> number_claimed("an ant has 6 legs but a spider 8", frozenset(), frozenset(("spider",)))
    '8'
    """
    text = LEADS.sub(" ", ASIDE.sub(" ", low))
    # "since 20 / 5 = 4" explains a claim that was made before it
    without_reasons = EXPLAINS.sub(" ", text)
    text = without_reasons if numbers_in(without_reasons) else text
    text = _that_is_asked_about(text, words)

    def numbers(part: str) -> list[str]:
        return [one for one in numbers_in(part) if not years or YEAR.fullmatch(one)]

    def first(found: list[str]) -> str:
        return next((one for one in found if one not in known), found[0])

    ends = (match.end() for match in reversed(list(CONCLUDES.finditer(text))))
    last = next((end for end in ends if numbers(text[end:])), None)
    if last is not None:
        conclusion = re.split(r"[.!?\n](?=\s|$)", text[last:])[0]
        found = numbers(conclusion)
        if "=" in conclusion:
            found = numbers(conclusion.rpartition("=")[2]) or found
        if CONVERTS.fullmatch(text.strip()) and all(one in known for one in found):
            found = numbers(text)
        if found:
            return first(found)
    found = numbers(text)
    return first(found) if found else ""


def _that_is_asked_about(text: str, words: frozenset[str]) -> str:
    """Of things that are contrasted the one with most words of the question, or the last."""
    parts = [part for part in CONTRASTS.split(text) if numbers_in(part)]
    if len(parts) < 2:
        return text
    stems = {stem(word) for word in words}
    return max(reversed(parts), key=lambda part: len(stems & set(map(stem, words_of(part)))))


def is_other_unit(after: str, words: frozenset[str]) -> bool:
    """Whether a number is followed by a unit that only stands in for the one asked for.

    >>> is_other_unit(" weeks.", words_of("How many months is that?"))
    True
    >>> is_other_unit(" years ago.", words_of("How many books?"))
    False
    """
    match = UNIT.match(after.lower())
    if match is None or is_among(match[1], words):
        return False
    return is_another_unit(match[1], words)
