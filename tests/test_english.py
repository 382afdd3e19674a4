"""Edits without a model: what they repair, and what they must leave alone."""

from __future__ import annotations

import pytest

from query_mutator.data import load_questions
from query_mutator.english import (
    ask_in_full,
    calm_down,
    capitalise_names,
    correct_spelling,
    correct_typing,
    drop_asides,
    drop_chatter,
    drop_filler,
    write_out,
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
        ("how do i sharpen a pensil", "how do i sharpen a pencil"),
        ("waht is teh satrboard side", "what is the starboard side"),
        ("wich nut is in marzipna", "which nut is in marzipan"),
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


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("serious q what is the largest planet, cant think rn lol", "what is the largest planet"),
        ("yo, which country has the most lakes pls", "which country has the most lakes"),
        (
            "a word for fear, it's on the tip of my tongue, what is it",
            "a word for fear, what is it",
        ),
        ("the capital of, you know, Peru", "the capital of Peru"),
        ("dumb question but do fish sleep? asking 4 a friend", "do fish sleep"),
        ("what does lol mean", "what does lol mean"),
        ("is it left, right or both", "is it left, right or both"),
        ("Hey Jude, who wrote it", "Hey Jude, who wrote it"),
        ("Like poles repel, how so", "Like poles repel, how so"),
        ("lol", "lol"),
    ],
)
def test_chatter_is_dropped(typed: str, left: str) -> None:
    assert drop_chatter(typed) == left


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("how do i get 2 the moon b4 u r old", "how do I get to the moon before you are old"),
        ("whats the word 4 ppl w/o hair", "what is the word for people without hair"),
        ("split 96 between 4 ppl n 2 dogs", "split 96 between 4 people and 2 dogs"),
        ("what does ppl mean", "what does ppl mean"),
        ("Is Ur in R, is the letter r in it", "Is Ur in R, is the letter r in it"),
        ("mail u@ppl.com, see w/x and b4-2", "mail u@ppl.com, see w/x and b4-2"),
    ],
)
def test_abbreviations_are_written_out(typed: str, written: str) -> None:
    assert write_out(typed) == written


@pytest.mark.parametrize(
    ("typed", "calm"),
    [
        ("WHAT DOES USB STAND FOR!!! HURRY!!!", "what does USB stand for! hurry!"),
        ("What is NASA??", "What is NASA?"),
        ("TCP/IP", "TCP/IP"),
        ("is it 5! or 3, 4", "is it 5! or 3, 4"),
    ],
)
def test_shouting_is_calmed_down(typed: str, calm: str) -> None:
    assert calm_down(typed) == calm


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        (
            "my neighbor loves her lawn and something makes hills in it, which small nearly blind "
            "animal digs tunnels",
            "which small nearly blind animal digs tunnels",
        ),
        (
            "I slept through history all year as the room was warm. What flower was the emblem "
            "of the Tudor kings?",
            "What flower was the emblem of the Tudor kings?",
        ),
        (
            "we had the music on and my hamster got out and all i want to know is what does pdf "
            "stand for",
            "what does pdf stand for",
        ),
        (
            "which of the pedals is the clutch in a manual car, i have driven for years but my "
            "head is empty",
            "which of the pedals is the clutch in a manual car",
        ),
        (
            "My nan slept. A course is on a Thursday. The exam is 8 days later and I am sick. "
            "On which day of the week is the exam?",
            "The exam is 8 days later and I am sick. On which day of the week is the exam?",
        ),
    ],
)
def test_stories_around_a_question_are_left_out(told: str, asked: str) -> None:
    assert drop_asides(told) == asked


@pytest.mark.parametrize(
    "question",
    [
        "we saw a grey animal with a horn on its nose at the zoo, what is it called",
        "My bus holds 52 people and we have three of them. How many people is that?",
        "If I hand in my notice on Monday the 3rd, what date is my last day?",
        "The tap in my kitchen drips. How do I stop it?",
        "My sister moved there, and they eat snails. Which country is that?",
        "How do I know when a cactus needs water?",
        "What do you call the head of a school, the one whose office you get sent to?",
        "When we talk by video, which part of my laptop sees me?",
        "lab burner with the gas hose and a blue flame, what is the name of the inventor",
        "I am 30. How old will I be in 12 years?",
        "",
    ],
)
def test_what_a_question_needs_stays(question: str) -> None:
    assert drop_asides(question) == question


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


@pytest.mark.parametrize(
    "clear",
    [
        "What is cos 60 degrees?",
        "If n is 5, what is n + 1?",
        "What is the area of a circle with radius r?",
        "In Toy Story 2 the toys save whom?",
        "What is 2 the square root of?",
    ],
)
def test_what_is_no_chat_has_no_abbreviations_of_chats(clear: str) -> None:
    assert write_out(clear) == clear
