"""The shipped pairs: one meaning asked twice, on one side of the split."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from query_mutator.data import load_questions
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
