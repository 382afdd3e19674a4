"""Marks for how much of what a reference says beyond the question an answer gives.

Words, not sentences, are compared: the embedding of a sentence says what it is about, and an
answer without the point is about the same thing.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from query_mutator.english.facts import judge_facts
from query_mutator.english.facts.mentions import WITHOUT_SPACES
from query_mutator.objectives.closeness.reference import Part, beyond_question, forms_of

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
UNLIKELY, LIKELY = 0.05, 0.9
"""Probabilities that the point is given as the answer which count 0 and 1."""
MOST_OF_IT = 0.7
"""Share of what is to be said that counts as all of it."""
WORDS_SHOWN = 6
LONGEST_ANSWER = 4000


@dataclass(frozen=True)
class Closeness:
    """Marks from 0 to 1, and why."""

    value: float
    why: str


@functools.cache
def point_weights(file: Path = WEIGHTS_FILE) -> tuple[float, ...]:
    """What `learn` has found, of the features of a reference's words."""
    return tuple(json.loads(file.read_text(encoding="utf-8")).values())


def find_closeness(question: str, reference: str, answer: str) -> Closeness:
    """The closeness of an answer to the reference, apart from what the question says already.

    >>> question, reference = "goose plural?", "The plural of goose is geese."
    >>> find_closeness(question, reference, "The goose is a plural noun.")
    Closeness(value=0.0, why='the reference adds: geese; the answer has not: geese')
    >>> find_closeness(question, reference, "geese").value
    1.0
    """
    answer = answer[:LONGEST_ANSWER]
    if WITHOUT_SPACES.search(reference):
        return _by_letters(question, reference, answer)
    parts = beyond_question(question, reference, point_weights())
    if not parts:
        return Closeness(0.0, "the reference has no words to compare")
    together = _marks(answer, [part.wordings for part in parts], question, reference)
    given = {
        part: max(marks, _word_by_word(part, answer, question, reference) if marks < 1 else 0.0)
        for part, marks in zip(parts, together, strict=True)
    }
    share = sum(part.weight * marks for part, marks in given.items())
    return Closeness(min(1.0, share / MOST_OF_IT), _why(given))


def _word_by_word(part: Part, answer: str, question: str, reference: str) -> float:
    """How far an answer gives the words of a part one by one."""
    if part.is_name or len(part.words) == 1:
        return 0.0
    marks = _marks(answer, [forms_of(word) for word in part.words], question, reference)
    return sum(marks) / len(marks)


def _marks(
    answer: str, facts: Sequence[tuple[str, ...]], question: str, reference: str
) -> list[float]:
    """How far an answer gives each of these facts as its answer."""
    given = judge_facts(answer, facts, question, reference)
    span = LIKELY - UNLIKELY
    return [min(1.0, max(0.0, (one.probability - UNLIKELY) / span)) for one in given]


def _why(given: dict[Part, float]) -> str:
    adds = f"the reference adds: {_shown(given)}"
    if missing := [part for part, marks in given.items() if marks < 0.5]:
        return f"{adds}; the answer has not: {_shown(missing)}"
    return f"says what {adds}"


def _shown(parts: dict[Part, float] | list[Part]) -> str:
    return ", ".join([part.together for part in parts][:WORDS_SHOWN])


def _by_letters(question: str, reference: str, answer: str) -> Closeness:
    """The share of the reference's pairs of letters that are not the question's."""
    pairs = {reference[i : i + 2] for i in range(len(reference) - 1)}
    added = {pair for pair in pairs if pair not in question and pair.isalnum()}
    if not added:
        return Closeness(0.0, "the reference has no words to compare")
    share = sum(pair in answer for pair in added) / len(added)
    return Closeness(share, f"{share:.0%} of the letters that the reference adds")
