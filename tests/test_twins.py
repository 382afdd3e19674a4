"""The shipped pairs: one meaning asked twice, on one side of the split."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from query_mutator.data import load_questions
from query_mutator.data.generate import generate
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.data.messing import STYLES, messy_twin, twin_rows
from query_mutator.english.facts import find_facts
from query_mutator.models.encoders import Encoder

DATA = Path(DEFAULT_FILE).parent
QUESTIONS = {question.id: question for question in load_questions()}


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


TWINS = rows_of("twins.jsonl")
GENERATED = [row for row in TWINS if row["hand"] == "generated"]


def is_held_out(row: dict[str, Any]) -> bool:
    return QUESTIONS[row["id"]].split == "heldout"


def test_every_messy_question_has_a_clear_twin_and_many_clear_ones_a_messy_one() -> None:
    styles = {row["id"]: row["style"] for row in TWINS}
    assert len(styles) == len(TWINS), "one each"
    for question in QUESTIONS.values():
        if question.columns["style"] == "messy":
            assert styles[question.id] == "clear"
        elif question.split == "heldout":
            assert styles[question.id] != "clear"
    messy = Counter(style for style in styles.values() if style != "clear")
    assert sum(messy.values()) >= 300
    assert set(messy) == set(STYLES)
    assert min(messy.values()) >= 70


def test_every_question_exists_twice_and_no_held_out_twin_is_generated() -> None:
    hands = {row["id"]: row["hand"] for row in TWINS}
    assert hands.keys() == QUESTIONS.keys()
    generated = {id for id, hand in hands.items() if hand == "generated"}
    assert all(QUESTIONS[id].split == "train" for id in generated)


def test_the_shipped_generated_rows_are_what_the_generator_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "query_mutator.data.messing"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [json.loads(line) for line in printed.splitlines()] == GENERATED
    styles = Counter(row["style"] for row in GENERATED)
    assert max(styles.values()) - min(styles.values()) <= 2, "balanced"


def test_another_seed_makes_other_twins_and_the_same_seed_the_same() -> None:
    questions = [QUESTIONS[row["id"]] for row in GENERATED]
    again, others = twin_rows(questions, 0), twin_rows(questions, 1)
    assert again == GENERATED
    alike = {row["twin"] for row in others} & {row["twin"] for row in again}
    assert len(alike) < 0.05 * len(again)


@pytest.mark.parametrize("style", STYLES)
def test_each_style_keeps_numbers_and_differs_from_the_question(style: str) -> None:
    asked = [question for question in QUESTIONS.values() if question.split == "train"]
    clear = [question for question in asked if question.columns["style"] == "clear"]
    made = 0
    for seed, question in enumerate(clear):
        twin = messy_twin(question.question, style, Random(seed), question.category)
        if twin is not None:
            made += 1
            assert twin != question.question
            numbers = Counter(re.findall(r"\d+", question.question))
            assert numbers <= Counter(re.findall(r"\d+", twin)), twin
    assert made >= (0.5 if style == "forgotten" else 0.99) * len(clear)


@pytest.mark.parametrize("style", ["typos", "phonetic", "telegram", "runon", "shouting", "alarm"])
def test_what_the_answer_hangs_on_is_left_as_it_is(style: str) -> None:
    for seed in range(40):
        random = Random(seed)
        no_jokers = messy_twin("How many cards are there, not counting jokers?", style, random)
        assert no_jokers is not None
        assert "not" in no_jokers.lower().split()
        plural = messy_twin('What is the plural of "leaf"?', style, random)
        assert plural is not None
        assert "leaf" in plural.lower()
        war = messy_twin("In which year did World War II end?", style, random)
        assert war is not None
        assert "ii" in re.findall(r"\w+", war.lower())


def test_generated_twins_are_as_near_to_their_questions_as_those_by_hand(encoder: Encoder) -> None:
    messy = [row for row in TWINS if row["style"] != "clear" and not is_held_out(row)]
    asked = encoder.encode([QUESTIONS[row["id"]].question for row in messy])
    typed = encoder.encode([row["twin"] for row in messy])
    cosines: dict[str, list[float]] = {"generated": [], "hand": []}
    for row, cosine in zip(messy, (asked * typed).sum(1), strict=True):
        cosines["generated" if row["hand"] == "generated" else "hand"].append(float(cosine))
    assert np.mean(cosines["generated"]) == pytest.approx(np.mean(cosines["hand"]), abs=0.1)
    assert min(cosines["generated"]) > min(cosines["hand"]) - 0.1


def test_no_side_story_is_told_more_than_a_few_times() -> None:
    parts = Counter(
        part.strip()
        for row in GENERATED
        for part in set(re.split(r"[.!?,]+| and ", row["twin"].lower()))
        if len(part.split()) >= 5
    )
    assert max(parts.values()) <= 4


def test_no_twin_gives_away_a_fact_that_its_question_has_not() -> None:
    for row in TWINS:
        question = QUESTIONS[row["id"]]
        for fact in question.key_facts:
            if any(find_facts(row["twin"], [fact])):
                assert any(find_facts(question.question, [fact])), row


def test_no_held_out_meaning_has_a_twin_in_training(encoder: Encoder) -> None:
    """Questions that share a key fact across the split, and their twins, are not alike."""
    generated = {row["id"] for row in generate()}  # their meanings are exact
    written = [question for question in QUESTIONS.values() if question.id not in generated]
    by_fact: dict[str, set[str]] = {}
    for question in written:
        for text in itertools.chain(*question.key_facts):
            by_fact.setdefault(text.casefold(), set()).add(question.id)
    pairs = {
        (one, other)
        for ids in by_fact.values()
        for one in ids
        for other in ids
        if (QUESTIONS[one].split, QUESTIONS[other].split) == ("heldout", "train")
    }
    twins = {row["id"]: row["twin"] for row in TWINS}
    texts = {
        id: [QUESTIONS[id].question, *filter(None, [twins.get(id)])] for id in {*sum(pairs, ())}
    }
    vectors = {id: encoder.encode(asked) for id, asked in texts.items()}
    assert len(pairs) > 100
    for one, other in pairs:
        assert (vectors[one] @ vectors[other].T).max() < 0.65, (texts[one], texts[other])


@pytest.mark.parametrize(("part", "split"), [("dev", "train"), ("test", "heldout")])
def test_labelled_rows_are_of_their_side_of_the_split_and_complete(part: str, split: str) -> None:
    answers, rewrites = rows_of(f"answers/{part}.jsonl"), rows_of(f"rewrites/{part}.jsonl")
    for row in (*answers, *rewrites):
        assert QUESTIONS[row["id"]].split == split
    assert len(answers) >= 300
    assert all(len(row["facts"]) == len(QUESTIONS[row["id"]].key_facts) for row in answers)
    assert {row["right"] for row in answers} == {True, False}
    kinds = Counter(row["kind"] for row in rewrites)
    assert set(kinds) == {"number", "name", "negation", "question word", "topic", "same"}
    assert min(kinds.values()) >= 45


@pytest.mark.parametrize(
    ("file", "split"),
    [
        ("answers/dev_2", "train"),
        ("answers/dev_real", "train"),
        ("answers/test_natural", "heldout"),
        ("answers/test_real", "heldout"),
        *((f"rewrites/train_{number}", "train") for number in range(2, 7)),
        ("rewrites/test_2", "heldout"),
    ],
)
def test_further_labelled_rows_are_of_their_side_of_the_split(file: str, split: str) -> None:
    rows = rows_of(f"{file}.jsonl")
    assert len(rows) >= 200
    assert {QUESTIONS[row["id"]].split for row in rows} == {split}
    twins = {row["id"]: row["twin"] for row in TWINS}
    for row in rows:
        assert row["question"] in (QUESTIONS[row["id"]].question, twins[row["id"]])
        if "facts" in row:
            assert len(row["facts"]) == len(QUESTIONS[row["id"]].key_facts)


PAIRS = [
    row
    for file in sorted((DATA / "pairs").glob("*.jsonl"))
    for row in rows_of(f"pairs/{file.name}")
]


def test_pairs_to_learn_rewriting_from_are_whole_and_of_all_styles() -> None:
    assert len(PAIRS) > 8000
    assert all(row["typed"].strip() and row["meant"].strip() for row in PAIRS)
    meant = Counter(" ".join(row["meant"].casefold().split()) for row in PAIRS)
    assert max(meant.values()) == 1
    styles = Counter(row["style"] for row in PAIRS)
    assert set(styles) == {*STYLES, "plain", "misused"}
    assert min(styles.values()) > 200
    assert {row["category"] for row in PAIRS} == {one.category for one in QUESTIONS.values()}


def test_no_pair_to_learn_rewriting_from_asks_what_is_held_out(encoder: Encoder) -> None:
    twins = {row["id"]: row["twin"] for row in TWINS}
    held_out = [
        one.question if one.columns["style"] == "clear" else twins[one.id]
        for one in QUESTIONS.values()
        if one.split == "heldout"
    ]
    meant = encoder.encode([row["meant"] for row in PAIRS])
    assert (meant @ encoder.encode(held_out).T).max() < 0.76
