"""Makes the messy twins that are shipped, and any others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from query_mutator.data.loading import Question
from query_mutator.data.messing.asked import Asked, take_apart
from query_mutator.data.messing.foreign import nonnative
from query_mutator.data.messing.phrases import Phrases
from query_mutator.data.messing.told import alarm, filler, forgotten, runon, story
from query_mutator.data.messing.typed import chat, phonetic, shouting, telegram, typos
from query_mutator.english.facts import find_facts

STYLES: dict[str, Callable[[Asked, Phrases, str], str | None]] = {
    "typos": typos,
    "phonetic": phonetic,
    "filler": filler,
    "story": story,
    "telegram": telegram,
    "nonnative": nonnative,
    "runon": runon,
    "shouting": shouting,
    "chat": chat,
    "alarm": alarm,
    "forgotten": forgotten,
}
TRIES = 8


class TwinWriter:
    """Writes messy twins, using every phrase once before any again."""

    def __init__(self, random: Random) -> None:
        self._phrases = Phrases(random)

    def twin(self, question: str, style: str, category: str = "") -> str | None:
        """The question in the style; None where the style cannot keep what it asks.

        The category chooses side stories that fit.
        """
        asked = take_apart(question)
        for _ in range(TRIES):
            made = STYLES[style](asked, self._phrases, category)
            if made is None:
                return None
            if made != question and _digits(question) <= _digits(made):
                return made
        return None


def messy_twin(question: str, style: str, random: Random, category: str = "") -> str | None:
    """One messy twin of a clear question, the same for the same state of the generator.

    >>> messy_twin("What is the capital of Peru?", "typos", Random(0)).count(" ")
    5
    """
    return TwinWriter(random).twin(question, style, category)


def twin_rows(
    questions: Iterable[Question], seed: int = 0, styles: Sequence[str] = tuple(STYLES)
) -> list[dict[str, str]]:
    """A row for each question, the styles in turn as far as they apply."""
    random = Random(seed)
    writer = TwinWriter(random)
    used: Counter[str] = Counter()
    rows = []
    for question in questions:
        order = sorted(random.sample(styles, len(styles)), key=lambda style: used[style])
        for style in order:
            twin = _fitting(writer, question, style)
            if twin is not None:
                used[style] += 1
                rows.append({"id": question.id, "style": style, "hand": "generated", "twin": twin})
                break
        else:
            raise RuntimeError(f"no style fits {question.question!r}")
    return rows


def _fitting(writer: TwinWriter, question: Question, style: str) -> str | None:
    """A twin that gives no key fact away, if there is one."""
    for _ in range(TRIES):
        twin = writer.twin(question.question, style, question.category)
        if twin is None or not _tells(twin, question):
            return twin
    return None


def _tells(twin: str, question: Question) -> bool:
    return any(
        any(find_facts(twin, [fact])) and not any(find_facts(question.question, [fact]))
        for fact in question.key_facts
    )


def _digits(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d+", text))


def untwinned(questions: Iterable[Question], twins: Iterable[dict[str, Any]]) -> list[Question]:
    """The clear questions to train on that nobody wrote a twin of."""
    written = {row["id"] for row in twins if row["hand"] != "generated"}
    return [
        question
        for question in questions
        if question.split == "train"
        and question.columns.get("style") == "clear"
        and question.id not in written
    ]
