"""Prints questions whose answers are computed, as JSONL: `python -m data.generate --seed 0`."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from data.families import FAMILIES, Family
from data.families.messy import FILLERS, STORIES, embed, typos
from data.families.problem import Problem, shuffled_forever
from objectives.facts import find_facts

PHRASINGS = Path(__file__).parent / "families" / "phrasings.toml"
KINDS = ("clear", "typos", "filler", "run-on", "telegraphic", "non-native", "alarming")
PROPER = frozenset({"clear", "non-native"})
"""Kinds that are typed with capitals."""
SAME_ANSWERS = 3
TRIES = 1000

Phrasing = Callable[[Problem], tuple[str, str]]


def generate(seed: int = 0) -> list[dict[str, Any]]:
    """All rows of all families, each meaning once, the same for the same seed."""
    random = Random(seed)
    writer = Writer(random)
    rows: list[dict[str, Any]] = []
    for family in FAMILIES:
        made = sorted(_rows(family, writer, random), key=lambda row: KINDS.index(row["kind"]))
        for number, row in enumerate(made, 1):
            row |= {"split": "train" if _is_train(len(rows)) else "heldout"}
            rows.append({"id": f"{family.prefix}-g{number:03}", **row})
    return rows


class Writer:
    """Puts problems into words, using every phrasing once before it uses one again."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._frames = {
            "filler": shuffled_forever(random, FILLERS),
            "run-on": shuffled_forever(random, STORIES),
        }
        self._pairs = {
            (topic, kind): shuffled_forever(random, pairs)
            for topic, kinds in tomllib.loads(PHRASINGS.read_text(encoding="utf-8")).items()
            for kind, pairs in kinds.items()
        }

    def phrasing(self, topic: str, kind: str) -> Phrasing:
        """What makes a question of the kind and its reference answer from a problem."""
        mess = self._mess(kind)
        pair = next(self._pairs[topic, "clear" if mess else kind])

        def put(problem: Problem) -> tuple[str, str]:
            values = problem.values | {"answer": problem.answer}
            question, reference = (_capitalised(text.format(**values)) for text in pair)
            if mess:
                return mess(question), reference
            return question if kind in PROPER else question.lower(), reference

        return put

    def _mess(self, kind: str) -> Callable[[str], str] | None:
        if kind == "typos":
            return lambda text: typos(text, self._random)
        if kind in self._frames:
            frame = next(self._frames[kind])
            return lambda text: embed(text, frame)
        return None


def _rows(family: Family, writer: Writer, random: Random) -> Iterator[dict[str, Any]]:
    meanings = set(family.asked)
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
                    and not any(find_facts(question, [problem.spellings]))
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
    """Three of five rows in turn, so that every kind and topic is in both splits."""
    return index % 5 in (0, 2, 4)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def main() -> None:
    """Prints one row a line."""
    parser = argparse.ArgumentParser(prog="python -m data.generate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="chooses numbers, phrasings and splits")
    for row in generate(parser.parse_args().seed):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
