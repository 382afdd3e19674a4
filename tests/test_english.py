"""Edits without a model: what they repair, and what they must leave alone."""

from __future__ import annotations

import pytest

from data import load_questions
from english import ask_in_full, capitalise_names, correct_spelling, drop_filler
from operators.edits import EDITS, apply_edits


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("whats the captial of itally", "what is the capital of italy"),
        ("wich vegtable do rabits allways eat", "which vegetable do rabbits always eat"),
        ("how mayn meters", "how many meters"),
        ("wat does usb stnad for", "what does usb stand for"),
        ("wat cat is nown as king of the jungel", "what cat is known as king of the jungle"),
        ("how do u spell it", "how do you spell it"),
    ],
)  # fmt: skip
def test_misspelt_words_are_corrected(typed: str, meant: str) -> None:
    assert correct_spelling(typed) == meant


@pytest.mark.parametrize(
    "question",
    [
        "How many Fujitsu FM-7 were sold in Wrocław by Mbappé?",
        "aisha counts 3, 6, 9 in mumbai",
        "what is a KERNEL_PANIC in dmesg?",
        "is the letter r a vowel",
        "Wie heißt die Hauptstadt von Peru?",
        "",
        "🦆 ?? \x00",
    ],
)
def test_names_numbers_and_other_languages_stay(question: str) -> None:
    assert correct_spelling(question) == question


def test_clear_questions_keep_their_words() -> None:
    clear = [row.question for row in load_questions() if row.columns["style"] == "clear"]
    changed = [question for question in clear if correct_spelling(question) != question]
    assert len(clear) > 300
    assert len(changed) <= len(clear) // 100, changed


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("um ok so like which kind of eclipse is it", "which kind of eclipse is it"),
        ("How do you know what you know?", "How do you know what you know?"),
        ("what color is it, you know, for a foul, thanks", "what color is it, for a foul"),
        ("um", "um"),
        ("so", "so"),
    ],
)  # fmt: skip
def test_filler_is_dropped(question: str, left: str) -> None:
    assert drop_filler(question) == left


def test_well_known_names_are_written_with_capitals() -> None:
    typed = "is it a march in may from new york to the usa, germany or romeville on windows"
    assert (
        capitalise_names(typed)
        == "is it a march in may from New York to the USA, Germany or romeville on windows"
    )


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("half a kilometer in meters", "What is half a kilometer in meters?"),
        ("chemical symbol of gold??", "What is the chemical symbol of gold?"),
        ("capital Canada", "What is the capital of Canada?"),
        ("spell the word", "spell the word"),
        ("8 packs, 12 per pack, total", "8 packs, 12 per pack, total"),
        ("my phone froze", "my phone froze"),
        ("young dog is called what", "young dog is called what"),
        ("gold", "gold"),
        ("", ""),
    ],
)
def test_telegrams_become_questions_and_nothing_else_does(typed: str, asked: str) -> None:
    assert ask_in_full(typed) == asked


def test_edits_put_the_question_as_one() -> None:
    typed = "so um wat is the captial of peru??"
    assert apply_edits(typed, tuple(EDITS)) == "What is the capital of Peru?"
    assert apply_edits("!!", tuple(EDITS)) == "!!"
    assert apply_edits("What is 2 + 2?", tuple(EDITS)) == "What is 2 + 2?"


@pytest.mark.parametrize("text", ["a", "so um ", "what, ", "x, ", ", like", "you know "])
def test_long_texts_are_read_once(text: str) -> None:
    """Patterns that try every split of such texts would not end within the test's time."""
    for edit in EDITS.values():
        assert len(edit(text * 30_000)) <= len(text) * 30_000
