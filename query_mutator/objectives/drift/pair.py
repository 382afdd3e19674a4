"""A question beside its rewrite, as words, and what a comparison of the two found."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from query_mutator.objectives.drift.asked import asking_part
from query_mutator.objectives.drift.numerals import listed
from query_mutator.objectives.drift.wording import (
    LONG,
    MOST_CHARACTERS,
    Word,
    function_words,
    is_common,
    is_misspelt,
    spelt,
    words_of,
)

SIGNS = re.compile("(?<![-=])[<>](?!-)|[≤≥√]")
"""Signs that change what is asked; others, and arrows, come and go with the wording."""


@dataclass(frozen=True)
class Pair:
    """A question and its rewrite."""

    question: str
    spelt: str
    """The question with its spelling corrected."""
    rewrite: str
    typed: tuple[Word, ...]
    """The words of the question as they were typed."""
    asked: tuple[Word, ...]
    """Its words as they should be spelt."""
    core: tuple[Word, ...]
    """Those of them that stand where it asks."""
    told: tuple[Word, ...]
    """The words of the rewrite."""
    long: bool
    """Whether the question tells a story besides: leaving it out is no drift."""
    loose: bool
    """Whether so much is misspelt that a word may stand for one it only resembles."""

    @classmethod
    def of(cls, question: str, rewrite: str) -> Pair:
        """The pair, cut to a length that can be compared."""
        question, rewrite = question[:MOST_CHARACTERS], rewrite[:MOST_CHARACTERS]
        fixed = spelt(question)
        start, end = asking_part(fixed)
        asked = words_of(fixed)
        return cls(
            question=question,
            spelt=fixed,
            rewrite=rewrite,
            typed=words_of(question),
            asked=asked,
            core=tuple(word for word in asked if word.end > start and word.start < end),
            told=words_of(rewrite),
            long=len(asked) > LONG,
            loose=is_misspelt(question),
        )

    @property
    def asking(self) -> str:
        """The text of the clauses that ask."""
        start, end = asking_part(self.spelt)
        return self.spelt[start:end].strip()

    @property
    def asked_texts(self) -> tuple[str, ...]:
        """Every word of the question, as typed or as it should be."""
        return tuple(dict.fromkeys(word.text for word in self.typed + self.asked))

    @property
    def corrected(self) -> dict[str, str]:
        """What misspelt words were taken for."""
        typed, asked = ([word.text for word in words] for words in (self.typed, self.asked))
        matcher = difflib.SequenceMatcher(None, typed, asked, autojunk=False)
        return {
            one: other
            for change, start, end, its_start, its_end in matcher.get_opcodes()
            if change == "replace" and end - start == its_end - its_start
            for one, other in zip(typed[start:end], asked[its_start:its_end], strict=True)
        }

    @property
    def told_texts(self) -> tuple[str, ...]:
        """Every word of the rewrite."""
        return tuple(dict.fromkeys(word.text for word in self.told))

    @property
    def same_signs(self) -> bool:
        """Whether both have the same signs of those that change what is asked."""
        return sorted(SIGNS.findall(self.question)) == sorted(SIGNS.findall(self.rewrite))

    @property
    def same_words(self) -> bool:
        """Whether nothing but spelling, capitals and marks differ."""
        told = [word.text for word in self.told]
        return self.same_signs and told in (
            [word.text for word in self.typed],
            [word.text for word in self.asked],
        )

    @property
    def foreign(self) -> bool:
        """Whether question or rewrite is in another language than English."""
        return any(_is_foreign(words) for words in (self.typed, self.told))


@dataclass
class Compared:
    """What a comparison found: numbers to weigh, and words for a reason."""

    numbers: dict[str, float] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    """Words of the rewrite that the question has nothing like, the most telling first."""
    aside: list[str] = field(default_factory=list)
    """Words of the rewrite that the question has, but not where it asks."""
    opening_lost: list[str] = field(default_factory=list)
    """Of the first words after the question word, those that the rewrite has nothing like."""
    lost: list[str] = field(default_factory=list)
    """Words of what was asked that the rewrite has nothing like."""
    new_numbers: list[float] = field(default_factory=list)
    lost_numbers: list[float] = field(default_factory=list)
    opposites: list[tuple[str, str]] = field(default_factory=list)
    exchanged: list[tuple[str, str]] = field(default_factory=list)
    kinds: tuple[str, str] = ("", "")
    """The kinds of answer that question and rewrite ask for."""


def _is_foreign(words: tuple[Word, ...]) -> bool:
    """Another alphabet; or several words, few of them English and none that joins others."""
    letters = [word.text for word in words if word.text.isalpha()]
    if not letters:
        return False
    if sum(max(text) > _LAST_LATIN for text in letters) > len(letters) / 2:
        return True
    joins = set(letters) & (function_words() - _SHARED)
    common = sum(map(is_common, letters))
    return len(letters) > 3 and not joins and common <= _MOST_COMMON * len(letters)


_LAST_LATIN = "\u024f"
_MOST_COMMON = 0.5
_SHARED = frozenset(
    listed("a an am as at do has her his in is it me on so to us was were will will de")
)
"""Words that other languages have too."""
