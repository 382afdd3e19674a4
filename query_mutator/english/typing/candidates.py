"""Which words may be meant by a word as it was typed."""

from __future__ import annotations

import functools
import heapq
import itertools
import re

from query_mutator.english.spelling import MOST_EDITS, RARE, SHORTEST, corrections, word_counts
from query_mutator.english.typing.channel import cost_of_typing, habits, never_meant, slip_costs
from query_mutator.english.typing.company import surprise
from query_mutator.english.words import common_words

RARE_IF_SHORT = 30_000_000
"""Two and three letters in a list of words are abbreviations more often than words."""
RARE_IF_SWAPPED, RARE_IF_SOUNDING = 50_000, 300_000
"""Times a word was counted that is meant where all letters are there, or all sounds."""
PEERS, KEPT = 24, 6
"""So many candidates are looked at closely; so many may be chosen by their company."""
WORSE = 9.0
"""A candidate that is so much less likely than the best of its word is none."""
TOO_FAR = 11.0


@functools.lru_cache(maxsize=32768)
def candidates(typed: str) -> tuple[tuple[str, float], ...]:
    """Likely words for one in small letters, each with the cost of typing it so.

    >>> [word for word, _ in candidates("oshen")][0]
    'ocean'
    """
    found = {*_spelt_alike(typed), *_sounding_alike(typed), *_of_letters().get(_letters(typed), ())}
    found -= {typed} | never_meant()
    near = heapq.nlargest(PEERS, found, key=lambda word: (_rough(typed, word), word))
    costs = {word: cost_of_typing(typed, word) for word in near}
    ranked = sorted(
        (cost + surprise(word, ""), word) for word, cost in costs.items() if cost < TOO_FAR
    )
    habitual = [(meant, slip_costs()["habit"]) for meant in habits().get(typed, ())]
    return *habitual, *tuple(
        (word, costs[word])
        for total, word in ranked[:KEPT]
        if total < ranked[0][0] + WORSE and word not in habits().get(typed, ())
    )


def _rough(typed: str, word: str) -> float:
    """Of many words that sound alike, those of the same length and letters that are common."""
    shared = sum(min(typed.count(letter), word.count(letter)) for letter in set(typed))
    return 4.0 * shared - 3.0 * abs(len(typed) - len(word)) - surprise(word, "")


def _spelt_alike(typed: str) -> list[str]:
    from symspellpy import Verbosity

    most = 1 if len(typed) < SHORTEST else MOST_EDITS
    found = corrections().lookup(typed, Verbosity.ALL, most)
    return [item.term for item in found if item.term in people_type()]


@functools.cache
def _of_letters() -> dict[str, list[str]]:
    """Words by their letters, whatever the order: rare ones are found too when letters swap."""
    found: dict[str, list[str]] = {}
    for word in sorted(people_type(RARE_IF_SWAPPED)):
        found.setdefault(_letters(word), []).append(word)
    return found


def _letters(word: str) -> str:
    return "".join(sorted(word))


def _sounding_alike(typed: str) -> list[str]:
    sounding = _by_sound()
    return list(itertools.chain.from_iterable(sounding.get(key, ()) for key in sounds(typed)))


@functools.cache
def people_type(least: int = RARE) -> frozenset[str]:
    """The words that a correction may lead to: those counted so often, and names."""
    listed = {
        word
        for word, count in word_counts().items()
        if count >= (least if len(word) > SHORTEST else RARE_IF_SHORT)
    }
    named = {word for word in common_words() if len(word) > SHORTEST + 1 and word.isascii()}
    return frozenset(listed | named)


@functools.cache
def _by_sound() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in sorted(people_type(RARE_IF_SOUNDING)):
        for key in sounds(word):
            found.setdefault(key, []).append(word)
    return found


_SPOKEN = tuple(
    (re.compile(written), spoken)
    for written, spoken in (
        (r"^kn|^gn", "n"), (r"^wr", "r"), (r"^ps", "s"), (r"^wh(?=o)", "h"), (r"wh", "w"),
        (r"^(?:yoo|yu|ew|eu)", "u"), (r"ph", "f"), (r"gh(?=t|$)", ""), (r"sch", "sk"),
        (r"(?:shu|ti|ssi|si|ci|shi)[oae]?n(?=s?$|al)", "Sn"), (r"ture|cher", "Cr"),
        (r"tch", "C"), (r"sh|(?<=[a-z])[tc]i(?=[aou])", "S"), (r"c(?=ean)", "S"),
        (r"sc(?=[eiy])", "s"), (r"c(?=[eiy])", "s"), (r"ck|q|c(?!h)", "k"), (r"x", "ks"),
        (r"z", "s"), (r"dg?(?=j|ge)", ""),
        (r"mb$", "m"), (r"th", "t"), (r"l(?=[kmf])", ""), (r"(?<=[aeiou])r(?![aeiouy])", ""),
        (r"(?<=.)h", ""), (r"v", "f"), (r"(?<=.)w", ""), (r"d$", "t"),
    )
)  # fmt: skip


def sounds(word: str) -> set[str]:
    """What is left of a word as it may be spoken: equal in one for words that sound alike.

    >>> sounds("oshen") & sounds("ocean"), sounds("kwire") & sounds("choir")
    ({'aSn'}, set())
    """
    soft = [word.replace("ch", letters) for letters in ("ch", "k")] if "ch" in word else [word]
    found = set()
    for spelt in soft:
        text = re.sub(r"(.)\1+", r"\1", spelt)
        for written, spoken in _SPOKEN:
            text = written.sub(spoken, text)
        for hard in {text, re.sub(r"g(?=[eiy])", "j", text)}:
            consonants = re.sub(r"[aeiouy]+", "", hard)
            key = ("a" if hard[:1] in "aeiouy" else "") + re.sub(r"(.)\1+", r"\1", consonants)
            found.add(key.replace("ch", "C"))
    return found
