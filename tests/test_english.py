"""Edits without a model: what they repair, and what they must leave alone."""

from __future__ import annotations

import pytest

from query_mutator.data import load_questions
from query_mutator.english import (
    ask_in_full,
    capitalise_names,
    correct_spelling,
    correct_typing,
    drop_filler,
)
from query_mutator.operators.edits import EDITS, apply_edits


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("whats the captial of itally", "what is the capital of italy"),
        ("wich vegtable do rabits allways eat", "which vegetable do rabbits always eat"),
        ("how mayn meters", "how many meters"),
        ("wat does usb stnad for", "what does usb stand for"),
        ("wat cat is the king of the jungel", "what cat is the king of the jungle"),
        ("how do u spell it", "how do you spell it"),
    ],
)  # fmt: skip
def test_misspelt_words_are_corrected(typed: str, meant: str) -> None:
    assert correct_spelling(typed) == meant
    assert correct_typing(typed) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (
            "waht si teh geren substnace in th leavse of palnts calld",
            "what is the green substance in the leaves of plants called",
        ),
        ("hwat od you clal a boook of mpas", "what do you call a book of maps"),
        ("wat oshen iz the larjest on urth", "what ocean is the largest on earth"),
        ("hoo woz the ferst man on the moon", "who was the first man on the moon"),
        ("whic hcity has teh most poeple", "which city has the most people"),
        ("isthe sun a star or aplanet", "is the sun a star or a planet"),
        ("Whihc river runs thru Paris", "Which river runs through Paris"),
        ("waht is 3.5 tiems 12", "what is 3.5 times 12"),
    ],
)
def test_what_is_typed_in_haste_or_by_ear_is_read(typed: str, meant: str) -> None:
    assert correct_typing(typed) == meant


@pytest.mark.parametrize(
    "question",
    [
        "wie viele tage hat ein jahr",
        "quelle est la capitale de la france",
        "quantos dias tem um ano",
        "por que el cielo es azul",
        "hoeveel dagen heeft een jaar",
        "chi ha dipinto la gioconda",
        'is it written "recieve" or "recieev"',
        "mail bob.smiht@exmaple.com about .wmv",
        "Ist Wrocław in Polnad?",
    ],
)
def test_other_languages_quotes_and_addresses_are_not_read_as_english(question: str) -> None:
    assert correct_typing(question) == question


@pytest.mark.parametrize(
    "question",
    [
        "How many Fujitsu FM-7 were sold in Wrocław by Mbappé?",
        "aisha counts 3, 6, 9 in mumbai",
        "what is a KERNEL_PANIC in dmesg?",
        "is the letter u a vowel",
        "what happened in 44 BC in the city of Ur, and why in R?",
        "is sudo, matcha, a selfie or vlookup worth it",
        "¿dónde está la ciudad más grande de perú?",
        "wo liegt denn eigentlich berlin bitte",
        "Wie heißt die Hauptstadt von Peru?",
        "",
        "🦆 ?? \x00",
    ],
)
def test_names_numbers_and_other_languages_stay(question: str) -> None:
    assert correct_spelling(question) == question
    assert correct_typing(question) == question


def test_clear_questions_keep_their_words() -> None:
    clear = [row.question for row in load_questions() if row.columns["style"] == "clear"]
    for correct in (correct_spelling, correct_typing):
        changed = [question for question in clear if correct(question) != question]
        assert len(clear) > 300
        assert len(changed) <= len(clear) // 100, changed


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("um ok so like which kind of eclipse is it", "which kind of eclipse is it"),
        ("How do you know what you know?", "How do you know what you know?"),
        ("what color is it, you know, for a foul, thanks", "what color is it, for a foul"),
        ("what does lol mean", "what does lol mean"),
        ("What is the ER, er, for", "What is the ER, for"),
        ("Hello Kitty origin", "Hello Kitty origin"),
        ("well water, is it safe", "well water, is it safe"),
        ("tell me about poles", "tell me about poles"),
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
        ("What's the capital of Spain?", "What's the capital of Spain?"),
        ("isn't gold a symbol", "isn't gold a symbol"),
        ("Recommend a first book", "Recommend a first book"),
        ("good morning", "good morning"),
        ("¿capital de Perú?", "¿capital de Perú?"),
        ("", ""),
    ],
)
def test_telegrams_become_questions_and_nothing_else_does(typed: str, asked: str) -> None:
    assert ask_in_full(typed) == asked


def test_letters_that_only_look_like_those_of_a_name_stay() -> None:
    assert capitalise_names("İran, Parıs, ındia") == "İran, Parıs, ındia"


def test_edits_put_the_question_as_one() -> None:
    typed = "so um wat is the captial of peru??"
    assert apply_edits(typed, tuple(EDITS)) == "What is the capital of Peru?"
    assert apply_edits("!!", tuple(EDITS)) == "!!"
    assert apply_edits("what is 5!", tuple(EDITS)) == "What is 5!"
    assert apply_edits("x = 1\nprint(x)", tuple(EDITS)) == "x = 1\nprint(x)"
    assert apply_edits("What is 2 + 2?", tuple(EDITS)) == "What is 2 + 2?"


@pytest.mark.parametrize("text", ["a", " ", "so um ", "what, ", "x, ", ", like", "helo "])
def test_long_texts_are_read_once(text: str) -> None:
    """No edit recurses or grows; one that tries every split of such a text takes minutes."""
    for edit in EDITS.values():
        assert len(edit(f"a{text * 30_000}b")) <= len(text) * 30_000 + 2
