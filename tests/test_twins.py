"""The shipped pairs: one meaning asked twice, on one side of the split."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from query_mutator.data import Question, load_questions
from query_mutator.data.generate import generate
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.english.facts import find_facts
from query_mutator.models.encoders import Encoder

DATA = Path(DEFAULT_FILE).parent
QUESTIONS = {question.id: question for question in load_questions()}


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


TWINS = rows_of("twins.jsonl")


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
    assert len(messy) == 11
    assert min(messy.values()) >= 30


def test_no_twin_gives_away_a_fact_that_its_question_has_not() -> None:
    for row in TWINS:
        question = QUESTIONS[row["id"]]
        for fact in question.key_facts:
            if any(find_facts(row["twin"], [fact])):
                assert any(find_facts(question.question, [fact])), row


def test_no_held_out_meaning_has_a_twin_in_training(encoder: Encoder) -> None:
    generated = {row["id"] for row in generate()}  # their meanings are exact
    asked: list[tuple[str, Question]] = [
        (text, question)
        for question in QUESTIONS.values()
        for text in (question.question, *(r["twin"] for r in TWINS if r["id"] == question.id))
        if question.id not in generated
    ]
    vectors = encoder.encode([text for text, _ in asked])
    heldout = np.array([question.split == "heldout" for _, question in asked])
    alike = vectors[heldout] @ vectors[~heldout].T
    held = [pair for pair, out in zip(asked, heldout, strict=True) if out]
    trained = [pair for pair, out in zip(asked, heldout, strict=True) if not out]
    for row, column in zip(*np.nonzero(alike > 0.65), strict=True):
        one, other = held[row][1], trained[column][1]
        shared = {text for fact in one.key_facts for text in fact} & {
            text for fact in other.key_facts for text in fact
        }
        assert not shared, (held[row][0], trained[column][0])


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
