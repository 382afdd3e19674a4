"""Pairs of a question and a rewrite, labelled: what is shipped, and what is made to learn from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.scoring import changes
from query_mutator.base.untrusted import parse_json, read_lines
from query_mutator.data import Question, load_questions
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.objectives.drift.wording import function_words

DATA = DEFAULT_FILE.parent
CLEAN_UP, MESSED_UP = "messy → clear", "clear → messy"
MADE, BY_HAND = "made", "by hand"
LONGEST_MESSED = 150


@dataclass(frozen=True)
class Labelled:
    """A question, a rewrite, and whether the rewrite asks something else."""

    id: str
    """Of the question: all its pairs are learned from, or none."""
    question: str
    rewrite: str
    changed: bool
    kind: str
    source: str
    style: str = ""


def twins(split: str) -> Iterator[Labelled]:
    """The twins of a split's questions: a perfect clean-up, and the same question made messy."""
    questions = {one.id: one for one in load_questions() if one.split == split}
    for row in map(parse_json, read_lines(DATA / "twins.jsonl", "the twins")):
        if (question := questions.get(row["id"])) is None:
            continue
        kind = CLEAN_UP if row["style"] == "clear" else MESSED_UP
        yield Labelled(
            question.id, question.question, row["twin"], False, kind, "twins", row["style"]
        )


def rewrites(part: str) -> Iterator[Labelled]:
    """The rewrites labelled by hand, of one file."""
    for row in map(parse_json, read_lines(DATA / "rewrites" / f"{part}.jsonl", "the rewrites")):
        changed = row["kind"] != "same"
        yield Labelled(row["id"], row["question"], row["rewrite"], changed, row["kind"], part)


def turned(pairs: Sequence[Labelled]) -> Iterator[Labelled]:
    """Perfect clean-ups the other way round."""
    for pair in pairs:
        if pair.kind == CLEAN_UP:
            yield Labelled(pair.id, pair.rewrite, pair.question, False, MESSED_UP, "turned")


def made(seed: int = 0) -> list[Labelled]:
    """Changes of the questions for training, by rules: the same for the same seed."""
    random = Random(seed)
    questions = [one for one in load_questions() if one.split == "train"]
    texts = {one.id: [one.question] for one in questions}
    for pair in twins("train"):
        texts[pair.id].append(pair.rewrite)
    writer = _Writer(random, questions, texts)
    return [pair for question in questions for pair in writer.pairs(question)]


class _Writer:
    """Makes pairs of a question."""

    def __init__(
        self, random: Random, questions: Sequence[Question], texts: dict[str, list[str]]
    ) -> None:
        self._random = random
        self._clear: dict[str, str] = {}
        self._messy: dict[str, list[str]] = {}
        self._of_category: dict[str, list[Question]] = defaultdict(list)
        for one in questions:
            is_clear = one.columns["style"] == "clear"
            first, others = texts[one.id][0], texts[one.id][1:]
            self._clear[one.id] = first if is_clear else others[0]
            self._messy[one.id] = others if is_clear else [first]
            self._of_category[one.category].append(one)
        self._names = sorted(
            {name for text in self._clear.values() for name in changes.names_in(text)}
        )

        self._words = sorted(
            {word for text in self._clear.values() for word in re.findall(r"(?<= )[a-z]{4,}", text)}
            - function_words()
        )

    def pairs(self, question: Question) -> Iterator[Labelled]:
        """What asks the same, and what does not."""
        for rewrite, of in self._same(question):
            if rewrite and of:
                yield Labelled(question.id, of, rewrite, False, "same", MADE)
        yield from self._about_an_aside(question)
        for rewrite in self._changed(question):
            of = self._origin(question.id)
            if rewrite and " ".join(rewrite.casefold().split()) != " ".join(of.casefold().split()):
                yield Labelled(question.id, of, self._typed(rewrite), True, "changed", MADE)

    def _about_an_aside(self, question: Question) -> Iterator[Labelled]:
        """A question that holds another thing's name, and the question about that thing."""
        clear = self._clear[question.id]
        messy, other = changes.with_an_aside(clear, self._random, self._names)
        if messy:
            yield Labelled(question.id, messy, self._typed(clear), False, "same", MADE)
            yield Labelled(question.id, messy, self._typed(other), True, "changed", MADE)

    def _same(self, question: Question) -> Iterator[tuple[str, str]]:
        random, clear = self._random, self._clear[question.id]
        for change in (changes.same_in_other_words, changes.alike, changes.number_in_words):
            yield self._typed(change(clear, random)), self._origin(question.id)
        if random.random() < 0.5:
            yield changes.polite(clear, random), self._origin(question.id)
        origin = self._origin(question.id)
        yield changes.tidied(origin, random), origin
        yield self._typed(clear), changes.messy(clear, random)
        if random.random() < 0.5:
            yield changes.messy(clear, random), clear
        if self._messy[question.id] and random.random() < 0.3:
            messy = random.choice(self._messy[question.id])
            if len(messy) < LONGEST_MESSED:
                yield changes.messy(messy, random), messy

    def _changed(self, question: Question) -> Iterator[str]:
        random, clear = self._random, self._clear[question.id]
        for change in changes.OTHER:
            yield change(clear, random)
        yield changes.another_name(clear, random, self._names)
        yield changes.another_word(clear, random, self._words)
        if random.random() < 0.4:
            yield changes.another_question_word(clear, random)
        if self._messy[question.id]:
            yield changes.about_an_aside(random.choice(self._messy[question.id]), random)
        other = random.choice(self._of_category[question.category])
        if other.id != question.id:
            yield self._clear[other.id]
        yield question.reference

    def _origin(self, identity: str) -> str:
        messy = self._messy[identity]
        if messy and self._random.random() < 0.6:
            return self._random.choice(messy)
        clear = self._clear[identity]
        return changes.messy(clear, self._random) if self._random.random() < 0.5 else clear

    def _typed(self, text: str) -> str:
        """Mostly as it is; else without capitals or marks."""
        if self._random.random() < 0.8:
            return text
        return self._random.choice([text.lower(), text.rstrip("?."), text.lower().rstrip("?.")])
