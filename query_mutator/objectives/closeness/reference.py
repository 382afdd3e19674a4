"""What a reference says beyond the question, and which of its words are the point."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from query_mutator.english.facts.mentions import written
from query_mutator.english.facts.tokens import Token, is_among, tokens_of, words_of
from query_mutator.english.names import capitalise_names
from query_mutator.english.spelling import correct_spelling, is_word, rarity
from query_mutator.english.words import AUXILIARIES, FUNCTION_WORDS, words_in

Numbers = npt.NDArray[np.float64]

POINT_FEATURES = (
    "bias", "number", "name", "rarity", "last", "before_is", "after_article", "after_is",
    "in_frame", "ends_in_ed_or_est", "alone", "last_of_these", "after_asked", "unknown",
)  # fmt: skip
"""By these, `learn` tells the words of a reference that belong to a key fact from the others."""
_EMPTY = FUNCTION_WORDS | words_in("between because most it's")
_ARTICLES = frozenset(("a", "an", "the"))
_NAMING = AUXILIARIES | words_in("called named means as")
_FRAME = words_in(
    "called named said known use used get gives comes means made make makes take takes"
)
LONGEST_REFERENCE = 2000
FEW, LONG = 6, 0.5
"""Of up to so many words one may be the point; of more, as if there were two, any may be."""
BRITISH = (
    ("or(?=s?$|ed$|ing$)", "our"),
    ("er(?=s?$)", "re"),
    ("iz(?=e|ing)", "is"),
    ("gray", "grey"),
)
SIGNS_AT_AN_END = re.compile(r"[+#]+(?![+#\w])")
"""Those of C++ and F#, not that of Ctrl+C."""
CORE = 0.3
"""A word with this share of the weightiest word's weight must be said."""


@dataclass(frozen=True)
class Part:
    """Words that follow each other in a reference and that an answer must say."""

    words: tuple[str, ...]
    is_name: bool
    weight: float
    """The weights of all parts add up to 1."""

    @property
    def together(self) -> str:
        return " ".join(self.words)

    @property
    def wordings(self) -> tuple[str, ...]:
        """How it may be said: of a name the last word is enough."""
        words = self.words[:-1]
        forms = tuple(" ".join((*words, form)) for form in forms_of(self.words[-1]))
        return (*forms, self.words[-1]) if self.is_name else forms


@functools.lru_cache(maxsize=4096)
def beyond_question(question: str, reference: str, point: tuple[float, ...]) -> tuple[Part, ...]:
    """What the reference adds and must be said; `point` are the weights of `POINT_FEATURES`."""
    said = words_said(reference)
    asked = words_asked(question)
    places = words_added(said, question, asked)
    if not places:
        return ()
    probable = 1.0 / (1.0 + np.exp(-point_features(said, places, asked) @ np.array(point)))
    weights = probable**2 / (probable**2).max()
    kept = [(place, weight) for place, weight in zip(places, weights, strict=True) if weight > CORE]
    if any(len(said[place].text) > 1 for place, _ in kept):  # the D and the C of D.C.
        kept = [one for one in kept if len(said[one[0]].text) > 1 or said[one[0]].text.isdigit()]
    runs: list[list[tuple[int, float]]] = []
    for place, weight in kept:
        if runs and runs[-1][-1][0] == place - 1:
            runs[-1].append((place, weight))
        else:
            runs.append([(place, weight)])
    total = sum(weight for _, weight in kept)
    return tuple(
        Part(
            tuple(said[place].raw for place, _ in run),
            len(run) > 1 and all(is_name(said, place) for place, _ in run),
            float(sum(weight for _, weight in run) / total),
        )
        for run in runs
    )


@functools.lru_cache(maxsize=8192)
def forms_of(word: str) -> tuple[str, ...]:
    """A word and its other forms: without an ending, of a country its people, British spelling.

    >>> forms_of("canines"), forms_of("knitting"), forms_of("color"), forms_of("bus")
    (('canines', 'canine'), ('knitting', 'knit'), ('color', 'colour'), ('bus',))
    """
    bare = [word[: -len(ending)] for ending in ("s", "es", "ing", "ed") if word.endswith(ending)]
    bare += [stem[:-1] for stem in bare if stem[-1:] == stem[-2:-1] and not word.endswith("s")]
    bare += [stem + "e" for stem in bare if word.endswith("ing")]
    bare += [word[:-3] + "y"] if word.endswith("ies") else []
    if word[:1].isupper():  # Mexico and Mexican, Germany and German
        bare += [word[:-1] + ending for ending in ("", "an", "ian")]
    british = [re.sub(american, spelt, word) for american, spelt in BRITISH]
    known = [form for form in (*bare, *british) if len(form) > 2 and is_word(form.casefold())]
    return (word, *dict.fromkeys(form for form in known if form != word))


def words_said(reference: str) -> list[Token]:
    """The words and signs of a reference; a sign that is part of a word is not taken off it.

    >>> [token.raw for token in words_said("C++ is -42, not C - 42.")]
    ['C++', 'is', '-42', ',', 'not', 'C', '-', '42', '.']
    """
    text = written(reference[:LONGEST_REFERENCE])
    tokens: list[Token] = []
    for token in tokens_of(text, 0, frozenset()):
        before = tokens[-1] if tokens else None
        if before and before.end == token.start and _belong_together(text.low, before, token):
            span = slice(before.start, token.end)
            token = replace(token, text=text.low[span], raw=text.raw[span], start=before.start)
            tokens.pop()
        tokens.append(token)
    return tokens


def _belong_together(low: str, before: Token, token: Token) -> bool:
    """Whether a word and the sign at its end, or a minus and its number, are one: C++, C#, -42."""
    if SIGNS_AT_AN_END.match(low, token.start):
        return before.text[0].isalpha()
    ahead = low[before.start - 1] if before.start else " "
    return before.text == "-" and token.text[0].isdigit() and not (ahead.isalnum() or ahead == ")")


def words_asked(question: str) -> frozenset[str]:
    """The words of a question and their stems, as typed and as they should be spelt."""
    typed = frozenset(token.text for token in words_said(question))
    return typed | words_of(question) | words_of(correct_spelling(question))


def words_added(said: Sequence[Token], question: str, asked: frozenset[str]) -> list[int]:
    """The first places of the words that are not the question's.

    Of two things to choose from, the one that the reference has is added, too. Where it has only
    forms of the question's words ("knives"), the form is the point.
    """
    first: dict[str, int] = {}
    for place, token in enumerate(said):
        if has_content(token):
            first.setdefault(token.text, place)
    content = list(first.values())
    chosen = _chosen(question, [said[place].text for place in content])
    added = [p for p in content if said[p].text in chosen or not is_among(said[p].text, asked)]
    if added:
        return added
    typed = {token.text for token in words_said(question)}
    return [place for place in content if said[place].text not in typed] or content


def has_content(token: Token) -> bool:
    """Whether it is a word that carries meaning."""
    return _begins(token.text).isalnum() and token.text not in _EMPTY


def _begins(word: str) -> str:
    """The first letter or digit of a word, after a minus."""
    return word.removeprefix("-")[:1]


def _chosen(question: str, words: Sequence[str]) -> set[str]:
    """Of the words beside the last "or" of a question the one that is among `words`."""
    asked = words_said(question)
    ors = [place for place, token in enumerate(asked) if token.text == "or"]
    if not ors:
        return set()
    before = [token.text for token in asked[: ors[-1]] if has_content(token)][-1:]
    after = [token.text for token in asked[ors[-1] :] if has_content(token)][:1]
    beside = words_of(" ".join(before + after))
    found = [word for word in words if is_among(word, beside)]
    return set(found) if len(found) == 1 else set()


def is_name(said: Sequence[Token], place: int) -> bool:
    """Whether a word has a capital that its place does not ask for."""
    token = said[place]
    starts = place == 0 or said[place - 1].sentence < token.sentence
    if not token.raw[0].isupper():
        return False
    return not (starts and is_word(token.text)) or capitalise_names(token.text) != token.text


def point_features(said: Sequence[Token], places: Sequence[int], asked: frozenset[str]) -> Numbers:
    """A row of `POINT_FEATURES` for each of the words at these places."""
    last = max((place for place, token in enumerate(said) if token.text[0].isalnum()), default=0)
    rows = []
    for place in places:
        word = said[place].text
        number = _begins(word).isdigit()
        before = said[place - 1].text if place else ""
        after = said[place + 1].text if place + 1 < len(said) else ""
        rows.append(
            (
                1.0,
                number,
                is_name(said, place),
                0.0 if number else rarity(word) / 5,
                place == last,
                after in AUXILIARIES,
                before in _ARTICLES,
                before in _NAMING,
                word in _FRAME,
                word.endswith(("ed", "est")),
                1 / len(places) if len(places) <= FEW else LONG,
                place == places[-1],
                bool(before) and is_among(before, asked),
                not is_word(word),
            )
        )
    return np.array(rows, float).reshape(len(places), len(POINT_FEATURES))
