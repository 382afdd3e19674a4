"""Prints questions whose answers are computed, as JSONL."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from query_mutator.data.families import FAMILIES, Family
from query_mutator.data.families.messy import FILLERS, STORIES, embed, typos
from query_mutator.data.families.problem import Deck, Problem

PHRASINGS = Path(__file__).parent / "families" / "phrasings.toml"
KINDS = ("clear", "typos", "filler", "run-on", "telegraphic", "non-native", "alarming")
PROPER = frozenset({"clear", "non-native"})
"""Kinds that are typed with capitals."""
MADE_MESSY = frozenset({"typos", "filler", "run-on"})
"""Kinds that are made from clear questions."""
SAME_ANSWERS = 3
TRIES = 1000
NAMES = (
    "Mia", "Ben", "Lena", "Omar", "Ella", "Noah", "Ruth", "Ivan", "Nora", "Theo", "Zoe", "Hugo",
    "Aisha", "Paul", "Yuki", "Carla", "Dario", "Greta", "Samir", "Tara", "Felix", "Priya", "Joel",
    "Wanda",
)  # fmt: skip
THINGS = (
    "stamps", "marbles", "pencils", "shells", "trading cards", "buttons", "beads", "postcards",
    "badges", "crayons", "erasers", "walnuts", "magnets", "foreign coins", "pebbles", "bookmarks",
    "acorns", "lollipops", "dice", "paper clips",
)  # fmt: skip

Phrasing = Callable[[Problem], tuple[str, str]]


def generate(seed: int = 0) -> list[dict[str, Any]]:
    """All rows of all families, each meaning once, the same for the same seed."""
    random = Random(seed)
    writer = Writer(random)
    meanings = {meaning for family in FAMILIES for meaning in family.asked}
    rows: list[dict[str, Any]] = []
    dealt: Counter[str] = Counter()
    for family in FAMILIES:
        made = list(_rows(family, writer, meanings, random))
        random.shuffle(made)
        made.sort(key=lambda row: KINDS.index(row["kind"]))
        for number, row in enumerate(made, 1):
            row["split"] = "train" if _is_train(dealt[row["kind"]]) else "heldout"
            dealt[row["kind"]] += 1
            rows.append({"id": f"{family.prefix}-g{number:03}", **row})
    return rows


class Writer:
    """Puts problems into words, using every phrasing, name and thing once before any again."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._frames = {
            "filler": Deck(random, FILLERS),
            "run-on": Deck(random, STORIES),
        }
        self._words = {"name": Deck(random, NAMES), "thing": Deck(random, THINGS)}
        self._pairs: dict[tuple[str, str], Deck[list[str]]] = {
            (topic, kind): Deck(random, pairs)
            for topic, kinds in tomllib.loads(PHRASINGS.read_text(encoding="utf-8")).items()
            for kind, pairs in kinds.items()
        }

    def phrasing(self, topic: str, kind: str) -> Phrasing:
        """What makes a question of the kind and its reference answer from a problem."""
        pairs = self._pairs[topic, "clear" if kind in MADE_MESSY else kind]
        pair = pairs.deal(lambda pair: kind not in self._frames or pair[0].endswith("?"))
        words = {n: deck.deal() for n, deck in self._words.items() if f"{{{n}}}" in pair[0]}
        frame = self._frames[kind].deal() if kind in self._frames else ""

        def put(problem: Problem) -> tuple[str, str]:
            values = problem.values | words | {"answer": problem.answer}
            question, reference = (_capitalised(text.format(**values)) for text in pair)
            if frame:
                return embed(question, frame), reference
            if kind == "typos":
                return typos(question, self._random, values.values()), reference
            return question if kind in PROPER else question.lower(), reference

        return put


def is_written(spellings: Sequence[str], question: str) -> bool:
    """Whether a question gives its own answer away, in one of these spellings.

    >>> is_written(["6", "six"], "What is 2 plus six?"), is_written(["6"], "What is 16 less 3.6?")
    (True, False)
    """
    text = question.casefold().replace(",", "")
    return any(
        re.search(rf"(?<![\w.]){re.escape(spelling.casefold())}(?![\w]|\.\d)", text)
        for spelling in spellings
    )


def _rows(
    family: Family, writer: Writer, meanings: set[str], random: Random
) -> Iterator[dict[str, Any]]:
    answers: Counter[str] = Counter()
    for topic in family.topics:
        problems = topic.problems(random)
        for kind in ("clear",) * topic.clear + topic.messy:
            put = writer.phrasing(topic.phrasings, kind)
            for problem in islice(problems, TRIES):
                question, reference = put(problem)
                if (
                    problem.meaning not in meanings
                    and answers[problem.answer] < SAME_ANSWERS
                    and not is_written(problem.spellings, question)
                ):
                    break
            else:
                raise RuntimeError(f"no new {topic.phrasings} in {TRIES} tries")
            meanings.add(problem.meaning)
            answers[problem.answer] += 1
            yield {
                "category": family.category,
                "style": "clear" if kind == "clear" else "messy",
                "kind": kind,
                "split": "",
                "question": question,
                "reference": reference,
                "key_facts": [list(problem.spellings)],
                "meaning": problem.meaning,
            }


def _is_train(index: int) -> bool:
    """Three of five rows of a kind in turn, so that each family has the kind in both splits."""
    return index % 5 in (1, 3, 4)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def main() -> None:
    """Prints one row a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="chooses numbers, phrasings and splits")
    for row in generate(parser.parse_args().seed):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
