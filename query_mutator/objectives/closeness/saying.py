"""How an answer says what a reference says beyond the question: as its answer, or by the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from query_mutator.english.spelling import rarity
from query_mutator.objectives.closeness.cues import (
    CLAUSE_ENDS,
    CONTRASTING,
    DENYING,
    GREETING,
    LEADING_UP,
    NAMING,
    TAKING_BACK,
    TAKING_BACK_FIRST,
    TAKING_BACK_PAIRS,
)
from query_mutator.objectives.closeness.reference import Beyond
from query_mutator.objectives.closeness.tokens import (
    STOPS,
    Token,
    reads_as,
    same_word,
    singular,
    tokens,
)

Similarities = dict[str, float]
SAYING_FEATURES = (
    "bias", "rival", "named_rival", "in_place", "denied_before", "denied_after",
    "contrasted", "taken_back", "corrected", "nearer_question", "with_question",
)  # fmt: skip
"""By these, `learn` tells answers that give the point from those that only mention it."""
LONGEST_ANSWER = 4000
MOST_OTHERS = 12
"""Other words that are compared with what was to be said: the first ones decide."""
_PAUSES = frozenset(",;:–—(")
_FEW_WORDS = 4
_NEAR, _BEFORE = 5, 6
"""Words around the point in which a denial or a contrast is about it."""
_WINDOW = 8
_DISMISSED_WITHIN = 3
_DIGITS_OF_YEAR = 4
_SURNAME = 0.7
"""What the last word of a name counts for the whole of it."""
_NUMBER_OF_ASKED, _OTHER_NUMBER = 0.9, 0.5
"""How much another number rivals: one of what is asked about, and any other."""
_FREE_WEIGHT = 0.5
_NUMBER_WEIGHT = 8.0


@dataclass(frozen=True)
class Saying:
    """An answer beside what was to be said."""

    beyond: Beyond
    said: Sequence[Token]
    hits: dict[int, dict[int, float]] = field(default_factory=dict)
    """For each place of the answer the places in `beyond.words` that it says, and how well."""

    @cached_property
    def asked(self) -> list[bool]:
        """For each word of the answer whether it is one of the question's."""
        known = {token: self.beyond.is_asked(token) for token in set(self.said)}
        return [known[token] for token in self.said]

    @cached_property
    def others(self) -> list[bool]:
        """Whether a word is neither the question's nor the reference's."""
        return [
            token.has_content and place not in self.hits and not self.asked[place]
            for place, token in enumerate(self.said)
        ]

    @cached_property
    def point(self) -> int | None:
        """The first place that says a word which must be said."""
        core = set(self.beyond.core) if self.beyond.words else set()
        return next((place for place, hit in sorted(self.hits.items()) if core & set(hit)), None)

    @cached_property
    def compared(self) -> list[str]:
        """The other words whose likeness to the point matters: those before it, if it is said."""
        if self.beyond.is_number or not self.beyond.words:
            return []
        found = [
            token.word
            for token, other in zip(self.said[: self.point], self.others, strict=False)
            if other and not token.is_number
        ]
        return list(dict.fromkeys(found))[:MOST_OTHERS]

    def sentence(self, place: int) -> tuple[int, int]:
        """Where the sentence around a place starts and ends."""
        start = next((i + 1 for i in range(place - 1, -1, -1) if self.said[i].word in STOPS), 0)
        ends = (i for i in range(place, len(self.said)) if self.said[i].word in STOPS)
        return start, next(ends, len(self.said))

    @cached_property
    def covered(self) -> float:
        """The share of what was to be said that is said in one breath."""
        window = _WINDOW * max(1, len(self.beyond.core) // 3)
        return max((self._covered(start, start + window) for start in self.hits), default=0.0)

    def _covered(self, start: int, end: int) -> float:
        got = np.zeros(len(self.beyond.words))
        for place in range(start, end + 1):
            for word, quality in self.hits.get(place, {}).items():
                got[word] = max(got[word], quality)
        share, weights = 0.0, np.array(self.beyond.weights)
        for group in map(list, self.beyond.names):
            said = float(got[group].mean())
            if len(group) > 1 and said:
                said = max(said, _SURNAME * float(got[group[-1]]))
            share += float(weights[group].sum()) * said
        return share


def read_answer(answer: str, beyond: Beyond) -> Saying:
    """What an answer says of what is beyond the question."""
    said = tokens(answer[:LONGEST_ANSWER])
    hits = {}
    for place, token in enumerate(said):
        if token.is_word and (hit := _hit(said, place, beyond)):
            hits[place] = hit
    return Saying(beyond, said, hits)


def _hit(said: Sequence[Token], place: int, beyond: Beyond) -> dict[int, float]:
    word = said[place].word
    before = said[place - 1].word if place else ""
    if (
        said[place].is_number
        and before in ("-", "−")
        and not (place > 1 and said[place - 2].is_word)
    ):
        return {}  # a negative number
    found = {}
    for number, wanted in enumerate(beyond.words):
        quality = float(word == wanted) if beyond.exact else reads_as(word, wanted)
        if quality:
            found[number] = quality
    for number in beyond.compounds.get(singular(word), ()):
        found[number] = 1.0
    after = place + 1 + (place + 1 < len(said) and said[place + 1].word in ("-", "–"))
    if after < len(said) and said[after].is_word:
        together = singular(word + said[after].word)
        for number, wanted in enumerate(beyond.words):
            if len(wanted) > _NEAR and together == singular(wanted):
                found[number] = 1.0
    return found


def saying_features(saying: Saying, likeness: Similarities) -> npt.NDArray[np.float64]:
    """`SAYING_FEATURES` of an answer that has the point; `likeness` of other words is to it."""
    place = saying.point
    assert place is not None
    words = [token.word for token in saying.said]
    start, end = saying.sentence(place)
    near = words[max(start, place - _BEFORE) : place]
    if "but" in near:
        near = near[len(near) - near[::-1].index("but") :]
    after = _until_clause_ends(words[place + 1 : place + 1 + _NEAR])
    backs = _taken_back(words)
    question = _question_weights(saying)
    return np.array(
        (
            1.0,
            max((rivalry(saying, other, likeness) for other in range(place)), default=0.0),
            saying.beyond.is_name and any(_is_named(saying, other) for other in range(place)),
            _in_place(saying, place, start, end),
            any(word in DENYING for word in near[-_NEAR:]),
            any(word in DENYING for word in after),
            any(word in CONTRASTING for word in near),
            any(back > place for back in backs),
            any(back <= place for back in backs),
            _nearer_question(question),
            question[0] > 0,
        ),
        float,
    )


def rivalry(saying: Saying, place: int, likeness: Similarities) -> float:
    """How much another word could be what is given as the answer."""
    token = saying.said[place]
    if not saying.others[place] or _dismissed(saying, place):
        return 0.0
    if saying.beyond.is_number:
        if _is_year(saying.beyond) and len(token.word) != _DIGITS_OF_YEAR:
            return 0.0  # the day before a year
        unit = any(saying.asked[place + 1 : place + 3])
        return (_NUMBER_OF_ASKED if unit else _OTHER_NUMBER) * token.is_number
    return likeness.get(token.word, 0.0)


def _is_year(beyond: Beyond) -> bool:
    numbers = [beyond.words[place] for place in beyond.core if beyond.words[place][0].isdigit()]
    return [len(number) for number in numbers] == [_DIGITS_OF_YEAR]


def _dismissed(saying: Saying, place: int) -> bool:
    """Whether it is said that another word is not what is asked for: "not Cusco but Lima"."""
    near = [token.word for token in saying.said[max(0, place - _DISMISSED_WITHIN) : place]]
    return any(word in DENYING for word in near) and not any(word in STOPS for word in near)


def _is_named(saying: Saying, place: int) -> bool:
    token = saying.said[place]
    named = saying.others[place] and token.name and token.word not in GREETING
    return named and not _dismissed(saying, place)


def _in_place(saying: Saying, place: int, start: int, end: int) -> bool:
    """Whether a word stands where an answer stands: first, or after "is", "called" and the like."""
    said = saying.said
    content = [i for i in range(start, end) if said[i].has_content]
    if content[0] == place and (len(content) <= _FEW_WORDS or any(saying.asked[place + 1 : end])):
        return True
    names = [i for i in range(start, place) if said[i].word in NAMING]
    return bool(names) and all(
        said[i].word in LEADING_UP
        or not said[i].is_word
        or i in saying.hits
        or (i == place - 1 and saying.others[i])
        for i in range(names[-1] + 1, place)
    )


def _until_clause_ends(words: Sequence[str]) -> list[str]:
    ends = [i for i, word in enumerate(words) if word in CLAUSE_ENDS or word == "and"]
    return list(words[: ends[0]] if ends else words)


def _taken_back(words: Sequence[str]) -> list[int]:
    """The places at which what was said before is taken back."""
    found = []
    for place, word in enumerate(words):
        starts = place > 0 and (words[place - 1] in STOPS or words[place - 1] in _PAUSES)
        if (
            word in TAKING_BACK
            or (starts and word in TAKING_BACK_FIRST)
            or tuple(words[place : place + 2]) in TAKING_BACK_PAIRS
        ):
            found.append(place)
    return found


def _question_weights(saying: Saying) -> tuple[float, float]:
    """How much of the question is in the clause with the point, and in another clause at most."""
    with_point, elsewhere = 0.0, -1.0
    start = 0
    core = set(saying.beyond.core)
    for end in [
        *(i for i, t in enumerate(saying.said) if t.word in CLAUSE_ENDS),
        len(saying.said),
    ]:
        clause = range(start, end)
        start = end + 1
        words = {saying.said[i].word for i in clause if saying.asked[i]}
        weight = sum(map(_asked_weight, _distinct(words)))
        if any(core & set(saying.hits.get(i, ())) for i in clause):
            with_point = max(with_point, weight)
        elif any(_says_other(saying, i) for i in clause):
            elsewhere = max(elsewhere, weight)
    return with_point, elsewhere


def _says_other(saying: Saying, place: int) -> bool:
    return saying.others[place] and (saying.said[place].is_number or not saying.beyond.is_number)


def _distinct(words: set[str]) -> list[str]:
    kept: list[str] = []
    for word in sorted(words):
        if not any(same_word(word, other) for other in kept):
            kept.append(word)
    return kept


def _asked_weight(word: str) -> float:
    return max(_FREE_WEIGHT, rarity(word)) if word[0].isalpha() else _NUMBER_WEIGHT


def _nearer_question(weights: tuple[float, float]) -> float:
    """From 1, where the clause with the point is the one about the question, to -1."""
    with_point, elsewhere = weights
    most = max(with_point, elsewhere)
    return (with_point - elsewhere) / most if elsewhere >= 0 and most > 0 else 0.0
