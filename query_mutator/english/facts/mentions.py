"""Where a fact is written in a text, however it is spelt."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from query_mutator.english.facts.units import written_forms
from query_mutator.english.numbers import fold_numbers
from query_mutator.english.spelling import is_word

ACCENTS = re.compile("([\u0041-\u052f])[\u0300-\u036f]+")
"""On Latin, Greek and Cyrillic letters; elsewhere marks make other letters."""
WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of languages that put no spaces between words."""
HEADING = re.compile(r"^\s*#+ *([^\n]*?)[.:]?$", re.MULTILINE)
MARKUP = re.compile(r"[*_`~\"“”„«»<>|]+|^\s*#+", re.MULTILINE)
MINUS = re.compile(
    r"(^\s*|\n\s*|[^\w\s,)]\s*|\b(?:is|are|was|be|to|of|at|about|exactly|gives|makes|get|equals)\s+|"
    r"\b(?=negative))(?:minus|negative) (?=\d)",
    re.IGNORECASE,
)
"""That of a number, where nothing stands before it to take the number from."""
PERCENT = re.compile(r"(?<=\d)(?:[ -]?per ?cent\b| +%)", re.IGNORECASE)
KEYS = re.compile(
    r"\b(?:ctrl|control|strg)\b\W+(?:(?:key|and|then|press|hit|push|tap|plus|the|letter|button|"
    r"together|with|while|pressing|hold|down)\W+)*([a-z])\b(?!')|\^([a-z])\b",
    re.IGNORECASE,
)
SUFFIX = r"(?:'?s|es|')?"
FAMILY = r"(?:'?s|es|'|ed|ing|ly|ally|al|n|ns|an|ans|ian|ians|ese|ish)?"
LONG_ENOUGH, LONG = 5, 8
"""Letters of a word that is known by the others when one is wrong, and when two are."""
MONTHS = "january february march april may june july august september october november december"
DAYS = "monday tuesday wednesday thursday friday saturday sunday"
SHORT = {
    name: rf"{name[:3]}{name[3:5] if name[:4] in ('tues', 'thur') else name[3:4]}"
    for name in (MONTHS + " " + DAYS).split()
    if len(name) > 4
}


@dataclass(frozen=True)
class Written:
    """A text made plain: `low` is `raw` without capitals, letter for letter."""

    raw: str
    low: str


@lru_cache(maxsize=4096)
def written(text: str) -> Written:
    """The text without accents, markup and separators within numbers, numbers in digits."""
    text = unicodedata.normalize("NFKD", text)
    text = ACCENTS.sub(r"\1", text)
    text = text.replace("’", "'").replace("ß", "ss").replace("−", "-")
    text = HEADING.sub(r"\1!", text)
    text = KEYS.sub(lambda match: f"Ctrl+{(match[1] or match[2]).upper()}", MARKUP.sub(" ", text))
    text = fold_numbers(re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text))
    text = PERCENT.sub("%", MINUS.sub(r"\1-", text))
    low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return Written(text, low)


def mentions(
    text: Written,
    fact: tuple[str, ...],
    *,
    exact: bool = False,
    short: Sequence[re.Pattern[str]] = (),
) -> list[tuple[int, int]]:
    """The places where one of the fact's wordings stands, in order, without overlaps.

    `short` finds shorter ones; where an ending is what is asked for, the wording is `exact`.
    """
    found = {span for wording in fact for span in _spans(text, wording, exact)}
    found |= {match.span() for pattern in short for match in pattern.finditer(text.raw)}
    spans = sorted(found, key=lambda span: (span[0], -span[1]))
    kept: list[tuple[int, int]] = []
    for span in spans:
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _spans(text: Written, wording: str, exact: bool) -> Iterator[tuple[int, int]]:
    wanted = " ".join(written(wording).low.split())
    if not wanted:
        return
    for match in _pattern(wanted, exact).finditer(text.low):
        yield match.span()
    if wanted in SHORT:
        short = re.compile(rf"\b{SHORT[wanted][:3]}(?:{SHORT[wanted][3:]})?\b(?![a-z])", re.I)
        for match in short.finditer(text.raw):
            alone = len(text.raw.split()) <= 3 or text.raw[match.end() : match.end() + 1] == "."
            if match[0][0].isupper() and alone:
                yield match.span()
    if not exact:
        yield from _misspelt(text, wanted, wording.istitle() and " " in wording)


@lru_cache(maxsize=20_000)
def _pattern(wanted: str, exact: bool = False) -> re.Pattern[str]:
    measured = re.fullmatch(r"(\d+(?:\.\d+)?)[ -]?([a-z]+)", wanted)
    if measured and (unit := written_forms(measured[2])):
        return re.compile(rf"(?<![\w.]){re.escape(measured[1])}[ -]?{unit}(?!\w)")
    if re.fullmatch(r"\d+(?:[.:]\d+)?", wanted):
        whole, _, fraction = wanted.partition(".")
        fraction = fraction.rstrip("0")
        digits = whole.replace(":", "[:.h]")
        if fraction:
            digits += f"[.,:h]{fraction}0*"  # 2.5, 2.50
        elif whole.isdigit() and len(whole) > 3:
            # 8000, 8 000, 8.000
            head = len(whole) % 3 or 3
            groups = [whole[:head], *(whole[i : i + 3] for i in range(head, len(whole), 3))]
            digits = r"[ .,']?".join(groups)
        return re.compile(
            rf"(?<![\w.^])(?<!\s-)(?<!^-)(?<!\d[:,]){digits}"
            r"(?!\d|\.\d*[1-9]|[:,]\d|(?:st|nd|rd|th)\b)"
        )
    if WITHOUT_SPACES.search(wanted):
        return re.compile(re.escape(wanted))
    before = r"(?<![\w.])" if wanted[:1].isdigit() else r"(?<!\w)"
    if re.fullmatch(r"[a-z][a-z' -]*", wanted):
        letters = [re.escape(letter) for letter in wanted if letter not in " -"]
        if len(letters) >= LONG_ENOUGH:
            # pothole, pot-hole, pot hole, P-O-T-H-O-L-E
            body = "[ -]?".join(letters)
            return re.compile(rf"{before}{body}{'' if exact else FAMILY}(?![\w+#])")
        body = r"[ -]?".join(re.escape(part) for part in re.split(r"[ -]", wanted))
        suffix = SUFFIX if len(letters) > 2 and not exact else ""
        return re.compile(rf"{before}{body}{suffix}(?![\w+#])")
    after = r"(?!\d|\.\d*[1-9])" if wanted[-1:].isdigit() else r"(?!\w)"
    return re.compile(before + re.escape(wanted) + after)


def _misspelt(text: Written, wanted: str, name: bool) -> Iterator[tuple[int, int]]:
    words = wanted.split()
    if len(wanted) < LONG_ENOUGH or not all(word.isalpha() for word in words):
        return
    most = 2 if len(wanted) >= LONG else 1
    found = list(re.finditer(r"[a-z]+", text.low))
    for first in range(len(found) - len(words) + 1):
        window = found[first : first + len(words)]
        typed = " ".join(match[0] for match in window)
        if typed == wanted or abs(len(typed) - len(wanted)) > most:
            continue
        if typed[0] != wanted[0] and {typed[0], wanted[0]} not in ({"c", "k"}, {"f", "p"}):
            continue
        if slips(typed, wanted, most) > most:
            continue
        if name or not all(is_word(one) for one in typed.split()):
            yield window[0].start(), window[-1].end()


def slips(one: str, other: str, most: int) -> int:
    """Letters left out, put in, exchanged or swapped between two words; most + 1 for more."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        two_before, before, row = before, row, [i]
        for j, right in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, two_before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
