"""Corrects all words of a question together, each by its letters and by its company."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from query_mutator.english.spelling import (
    LETTER_FOLLOWS,
    RARE,
    SHORTEST,
    TYPED,
    is_word,
    pair_counts,
    word_counts,
)
from query_mutator.english.typing.candidates import candidates, people_type
from query_mutator.english.typing.channel import Costs, cost_of_typing, costs_of_slips, habits
from query_mutator.english.typing.company import START, is_asked, surprise
from query_mutator.english.words import FUNCTION_WORDS

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
KEPT = re.compile(
    r"\"[^\"]*\"|“[^”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)"
    r"|(?<!\S)[^\s@/\\_=<>]*[@/\\_=<>]\S*|[.\-]\w+"
)
"""Quotes, code, addresses and endings of files stay as they are."""
FULL_OF_ERRORS = 0.35
"""Share of unknown words from which on a text is full of errors."""
MOST_STATES = 8
"""Ways to read the text so far that are followed further."""
MOST_WORDS, LONGEST = 200, 24
"""Words of a text, and letters of a word, that are looked at."""
STRAIN_OF_ENGLISH, FOR_TYPED, FOR_READ = 3.5, 4.0, 2.0
"""How far letters of misspelt English are from its words, at most, and how much further they may
be for its shares of function words as typed and as read: those of another language are further."""
STRAIN_OF_UNREAD = 9.0
USUAL_LETTERS = 6


class Reading(NamedTuple):
    """What the next words as typed may be."""

    taken: int
    words: tuple[str, ...]
    """For each word that is taken: what it is read as; empty where it is part of the one before."""
    cost: float


class Path(NamedTuple):
    """One way to read the words so far."""

    cost: float
    words: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def correct_typing(question: str) -> str:
    """The question as it was meant, letter by letter; names, numbers and quotes stay.

    >>> correct_typing("waht si teh captial of peru")
    'what is the capital of peru'
    >>> correct_typing("hoo woz the ferst prezident ov the yoonited stayts")
    'who was the first president of the united states'
    """
    quoted = [match.span() for match in KEPT.finditer(question)]
    matches = [
        match
        for match in WORD.finditer(question)
        if not any(start <= match.start() < end for start, end in quoted)
    ][:MOST_WORDS]
    words = [_uncapitalised(match[0]) for match in matches]
    words = [
        word.upper() if len(word) == 1 and before.casefold() in LETTER_FOLLOWS else word
        for before, word in pairwise(["", *words])
    ]
    wrong = sum(map(_is_wrong, words))
    if not wrong:
        return question
    read = _most_likely(words, costs_of_slips(min(1.0, wrong / len(words) / FULL_OF_ERRORS)))
    if not _is_english(words, read):
        return question
    pieces, end = [], 0
    for match, word in zip(matches, read, strict=True):
        gap = question[end : match.start()]
        capital = match[0][0].isupper() and word[:1].islower()
        pieces += [gap if word else gap.rstrip(), word[:1].upper() + word[1:] if capital else word]
        end = match.end()
    return "".join(pieces) + question[end:]


def _uncapitalised(word: str) -> str:
    """A word with a capital in small letters, where it is a slip for no name: `Waht`."""
    lower = word.casefold()
    if word != lower.capitalize() or not _is_wrong(lower) or len(word) <= SHORTEST:
        return word
    return lower if candidates(lower)[:1] and candidates(lower)[0][0] in FUNCTION_WORDS else word


def _most_likely(words: Sequence[str], costs: Costs) -> tuple[str, ...]:
    """What all of the words are read as: the way through them that costs least."""
    paths: list[dict[str, Path]] = [{} for _ in range(len(words) + 1)]
    paths[0][START] = Path(0.0, ())
    for place in range(len(words)):
        followed = sorted(paths[place].items(), key=lambda item: item[1])[:MOST_STATES]
        for reading in _readings(words, place, costs):
            spoken = " ".join(reading.words).casefold().split()
            further = paths[place + reading.taken]
            for before, path in followed:
                cost, last = path.cost + reading.cost, before
                for word in spoken:
                    cost, last = cost + surprise(word, last), word
                if last not in further or cost < further[last].cost:
                    further[last] = Path(cost, path.words + reading.words)
    return min(paths[-1].values()).words


def _readings(words: Sequence[str], place: int, costs: Costs) -> Iterator[Reading]:
    word = words[place]
    wrong = _is_wrong(word)
    yield Reading(1, (word,), wrong * (costs.unknown + costs.letter * len(word)))
    if not _is_plain(word):
        return
    for meant, cost in candidates(word):
        yield Reading(1, (meant,), cost if wrong else cost + costs.real)
    if wrong:
        for split in range(1, len(word)):
            if _is_pair(word[:split], word[split:]):
                yield Reading(1, (f"{word[:split]} {word[split:]}",), costs.space)
    after = words[place + 1] if place + 1 < len(words) else ""
    if after and _is_plain(after) and (wrong or _is_wrong(after)):
        joined = word + after
        if joined in people_type():
            yield Reading(2, (joined, ""), costs.space)
        for split in (len(word) - 1, len(word) + 1):
            if _is_pair(joined[:split], joined[split:]):
                yield Reading(2, (joined[:split], joined[split:]), costs.space)


def _is_english(typed: Sequence[str], read: Sequence[str]) -> bool:
    """Whether the words as typed are near enough to those as read to be slips for them."""
    strains = [_strain(one, other) for one, other in zip(typed, read, strict=True)]
    strained = [strain for strain in strains if strain]
    as_read = " ".join(read).casefold().split()
    of_typed = sum(word in FUNCTION_WORDS for word in typed) / len(typed)
    of_read = sum(word in FUNCTION_WORDS for word in as_read) / len(typed)
    most = STRAIN_OF_ENGLISH + FOR_TYPED * of_typed + FOR_READ * of_read
    return of_read > 0 and sum(strained) < most * len(strained)


def _strain(typed: str, read: str) -> float:
    """How far a misspelt word is from what it is read as; nothing for others."""
    if not _is_wrong(typed) and typed == read:
        return 0.0
    if typed == read:
        return STRAIN_OF_UNREAD
    if read in habits().get(typed, ()):
        return costs_of_slips(1.0).habit
    if not read or " " in read:
        return costs_of_slips(1.0).space
    cost = cost_of_typing(typed, read) * USUAL_LETTERS / max(len(typed), USUAL_LETTERS - 2)
    return min(STRAIN_OF_UNREAD, cost)


def _is_pair(one: str, other: str) -> bool:
    return f"{one} {other}" in pair_counts()


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower() and len(word) <= LONGEST


def _is_wrong(word: str) -> bool:
    """Whether a word is in no dictionary, or one that nobody means."""
    return _is_plain(word) and (word in _always_wrong() or not _is_known(word))


def _is_known(word: str) -> bool:
    if len(word) == 1 or is_word(word) or is_asked(word):
        return True
    single = word[:-1]
    is_plural = word[-1] == "s" != word[-2] and len(single) > SHORTEST
    return is_plural and single not in FUNCTION_WORDS and word_counts().get(single, 0) >= RARE


@functools.cache
def _always_wrong() -> frozenset[str]:
    rare = {word for word in habits() if len(word) > 2 and word_counts().get(word, 0) < RARE}
    return (frozenset(TYPED) | rare) - {"i"}
