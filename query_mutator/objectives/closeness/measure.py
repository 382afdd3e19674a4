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
from query_mutator.objectives.closeness.yes_or_no import means_yes, says_yes, without_yes_or_no

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
UNLIKELY, LIKELY = 0.05, 0.9
"""Probabilities that the point is given as the answer which count 0 and 1."""
MOST_OF_IT = 0.7
"""Share of what is to be said that counts as all of it."""
OF_YES_OR_NO = 0.5
"""The share of a right yes or no in a reference that says more."""
WORDS_SHOWN = 6
LONGEST_ANSWER = 4000


@dataclass(frozen=True)
class Closeness:
    """Marks from 0 to 1, and why."""

    value: float
    why: str


NOTHING_TO_COMPARE = Closeness(0.0, "the reference has no words to compare")


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
    decided = says_yes(reference)
    if decided is None:
        return _by_words(question, reference, reference, answer)
    said = says_yes(answer)
    shown = "yes" if decided else "no"
    if said is not None and said != decided:
        return Closeness(0.0, f"the reference says {shown}; the answer does not")
    agrees = said is not None or means_yes(question, answer) == decided
    rest = _by_words(question, without_yes_or_no(reference), reference, answer)
    if rest is NOTHING_TO_COMPARE:
        return Closeness(
            float(agrees),
            f"the reference says {shown}; so does the answer"
            if agrees
            else f"the reference says {shown}; the answer does not",
        )
    if not agrees:
        return rest
    value = min(1.0, (OF_YES_OR_NO + (1 - OF_YES_OR_NO) * rest.value) / MOST_OF_IT)
    return Closeness(value, f"says {shown}; {rest.why}")


def _by_words(question: str, said: str, reference: str, answer: str) -> Closeness:
    """How far an answer gives what `said`, all of a reference or some of it, adds."""
    parts = beyond_question(question, said, point_weights())
    if not parts:
        return NOTHING_TO_COMPARE
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
        return NOTHING_TO_COMPARE
    share = sum(pair in answer for pair in added) / len(added)
    return Closeness(share, f"{share:.0%} of the letters that the reference adds")
