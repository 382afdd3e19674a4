"""What a reference says beyond the question, and which of its words are the point."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from query_mutator.english.spelling import correct_spelling, is_written, rarity
from query_mutator.english.words import AUXILIARIES
from query_mutator.objectives.closeness.cues import listed
from query_mutator.objectives.closeness.tokens import Token, same_word, singular, tokens

Numbers = npt.NDArray[np.float64]

POINT_FEATURES = (
    "bias", "number", "name", "rarity", "last", "before_is", "after_article", "after_is",
    "in_frame", "ends_in_ed", "alone", "last_of_these", "after_asked", "unknown",
)  # fmt: skip
"""By these, `learn` tells the words of a reference that belong to a key fact from the others."""
_ARTICLES = frozenset(("a", "an", "the"))
_NAMING = AUXILIARIES | listed("called named means as")
_FRAME = listed("called named said known use used get gives comes means made make makes take takes")
LONGEST_REFERENCE = 2000
FEW, LONG = 6, 0.5
"""Of up to so many words one may be the point; of more, as if there were two, any may be."""
CORE = 0.3
"""A word with this share of the weightiest word's weight must be said."""


@dataclass(frozen=True)
class Beyond:
    """The words of a reference that are not the question's; `weights` add up to 1."""

    words: tuple[str, ...]
    weights: tuple[float, ...]
    names: tuple[tuple[int, ...], ...]
    """The places in `words` of each word alone, or of the words of a name."""
    compounds: Mapping[str, tuple[int, ...]]
    """Two words of the reference written as one, and the places of those that are in `words`."""
    asked: frozenset[str]
    """Words with content of the question, as typed and as they should be spelt."""
    exact: bool
    """Whether forms of a word are told apart: a plural is asked for, say."""
    is_name: bool
    """Whether a name must be said."""

    @property
    def core(self) -> list[int]:
        """The places of the words that must be said."""
        least = CORE * max(self.weights, default=0.0)
        return [place for place, weight in enumerate(self.weights) if weight >= least]

    @property
    def is_number(self) -> bool:
        return any(self.words[place][0].isdigit() for place in self.core)

    def is_asked(self, token: Token) -> bool:
        """Whether a word is one of the question's, in any form."""
        return token.has_content and _in(token.word, self.asked)


@functools.lru_cache(maxsize=4096)
def beyond_question(question: str, reference: str, point: tuple[float, ...]) -> Beyond:
    """What the reference adds; `point` are the weights of `POINT_FEATURES`."""
    said = tokens(reference[:LONGEST_REFERENCE])
    asked = asked_words(question)
    places, exact = words_added(said, question, asked)
    if not places:
        return Beyond((), (), (), {}, asked, exact, False)
    probable = 1.0 / (1.0 + np.exp(-point_features(said, places, asked) @ np.array(point)))
    weights = probable**2 / (probable**2).sum()
    is_name = any(
        said[place].name and weight >= CORE * weights.max()
        for place, weight in zip(places, weights, strict=True)
    )
    return Beyond(
        tuple(said[place].word for place in places), tuple(weights.tolist()),
        _names(said, places), _compounds(said, places), asked, exact, is_name,
    )  # fmt: skip


def asked_words(question: str) -> frozenset[str]:
    """The words with content of a question, as typed and as they should be spelt."""
    return content_words_of(tokens(question)) | content_words_of(tokens(correct_spelling(question)))


def words_added(
    said: Sequence[Token], question: str, asked: frozenset[str]
) -> tuple[list[int], bool]:
    """The first places of the words that are not the question's, and whether their form matters.

    Of two things to choose from, the one that the reference has is added, too. Where it has only
    forms of the question's words ("knives"), the form is the point.
    """
    first: dict[str, int] = {}
    for place, token in enumerate(said):
        if token.has_content:
            first.setdefault(token.word, place)
    content = list(first.values())
    chosen = _chosen(question, [said[place].word for place in content])
    added = [p for p in content if said[p].word in chosen or not _in(said[p].word, asked)]
    if added:
        return added, False
    typed = content_words_of(tokens(question))
    return [place for place in content if said[place].word not in typed] or content, True


def _chosen(question: str, words: Sequence[str]) -> set[str]:
    """Of the words beside the last "or" of a question the one that is among `words`."""
    asked = tokens(question)
    ors = [place for place, token in enumerate(asked) if token.word == "or"]
    if not ors:
        return set()
    before = [token.word for token in asked[: ors[-1]] if token.has_content][-1:]
    after = [token.word for token in asked[ors[-1] :] if token.has_content][:1]
    found = [word for word in words if _in(word, frozenset(before + after))]
    return set(found) if len(found) == 1 else set()


def point_features(said: Sequence[Token], places: Sequence[int], asked: frozenset[str]) -> Numbers:
    """A row of `POINT_FEATURES` for each of the words at these places."""
    last = max((place for place, token in enumerate(said) if token.is_word), default=0)
    rows = []
    for place in places:
        word = said[place].word
        before = said[place - 1].word if place else ""
        after = said[place + 1].word if place + 1 < len(said) else ""
        rows.append(
            (
                1.0,
                said[place].is_number,
                said[place].name,
                0.0 if said[place].is_number else rarity(word) / 5,
                place == last,
                after in AUXILIARIES,
                before in _ARTICLES,
                before in _NAMING,
                word in _FRAME,
                word.endswith("ed"),
                1 / len(places) if len(places) <= FEW else LONG,
                place == places[-1],
                bool(before) and _in(before, asked),
                not is_written(word),
            )
        )
    return np.array(rows, float).reshape(len(places), len(POINT_FEATURES))


def content_words_of(found: Sequence[Token]) -> frozenset[str]:
    """The words that carry meaning."""
    return frozenset(token.word for token in found if token.has_content)


def _in(word: str, words: frozenset[str]) -> bool:
    return word in words or any(same_word(word, other) for other in words)


def _names(said: Sequence[Token], places: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The words that follow each other with capitals go together."""
    groups: list[list[int]] = []
    for number, place in enumerate(places):
        follows = number > 0 and place == places[number - 1] + 1
        if follows and said[place].name and (said[place - 1].name or place == 1):
            groups[-1].append(number)
        else:
            groups.append([number])
    return tuple(map(tuple, groups))


def _compounds(said: Sequence[Token], places: Sequence[int]) -> dict[str, tuple[int, ...]]:
    numbers = {place: number for number, place in enumerate(places)}
    words = [place for place, token in enumerate(said) if token.is_word]
    joined: dict[str, tuple[int, ...]] = {}
    for one, other in itertools.pairwise(words):
        if found := tuple(numbers[place] for place in (one, other) if place in numbers):
            joined[singular(said[one].word + said[other].word)] = found
    return joined
