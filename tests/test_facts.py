"""Which facts an answer gives: what people write, and what they take back, deny or only mention."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from query_mutator.english.facts import find_facts, judge_facts

Asked = tuple[str, str, tuple[str, ...]]
"""A question, its reference answer and its key fact."""
Case = tuple[Asked, str, bool]

PERU: Asked = ("What is the capital of Peru?", "The capital of Peru is Lima.", ("Lima",))
LEGS = ("How many legs does an ant have?", "An ant has six legs.", ("6", "six"))
EGGS = (
    "A tray holds 12 eggs and 5 are broken. How many are whole?",
    "There are 7 whole eggs.",
    ("7", "seven"),
)
BULB = ("What do you plant to grow a tulip?", "You plant a bulb.", ("bulb", "bulbs"))
WARMTH = (
    "Which thing do you hang up to see how warm it is?",
    "You hang up a thermometer.",
    ("thermometer", "thermometers"),
)
TRAIN = ("The train leaves at 5 and takes half an hour. When is it there?", "At 5:30.", ("5:30",))
SNACK = ("What snack pops when corn is heated?", "Heated corn makes popcorn.", ("popcorn",))
WALL = ("Which country built the Great Wall?", "China built the Great Wall.", ("China", "Chinese"))
NOBEL = (
    "Who discovered radium together with her husband?",
    "Marie Curie discovered radium.",
    ("Curie", "Marie Curie"),
)
COLOUR = ("What colour is a ripe lemon?", "A ripe lemon is yellow.", ("yellow",))
DAY = ("Which day comes after Monday?", "Tuesday comes after Monday.", ("Tuesday",))
COPY = ("Which keys undo the last step?", "Ctrl+Z undoes the last step.", ("Ctrl+Z",))
METAL = ("Which metal is in a magnet?", "A magnet is made of iron.", ("iron",))
STATES = (
    "Which country has fifty states?",
    "The United States has fifty states.",
    ("United States",),
)
VITAMIN = ("Which vitamin is in oranges?", "Oranges have vitamin C.", ("vitamin C",))
SILENT = ("Which letter of knife is not spoken?", "The letter K is not spoken.", ("K",))
NAMED = ("Who is the Eiffel Tower named after?", "It is named after Gustave Eiffel.", ("Gustave",))
PLURAL = ("What is the plural of goose?", "The plural of goose is geese.", ("geese",))
STEAM = ("What does water become when it boils?", "Boiling water becomes steam.", ("steam",))

WAR = ("When did the war begin?", "It began in 1939.", ("1939",))
WAY = ("How far is it?", "It is 100 km away.", ("100 km", "100"))
COLD = ("How cold is it?", "It is -5 degrees.", ("-5",))
RATIO = ("What is 5 / 2?", "5 / 2 is 2.5.", ("2.5",))
HALF = ("What share of it is water?", "50% of it is water.", ("50%",))

CASES: dict[str, list[Case]] = {
    "a plain answer": [
        (PERU, "Lima", True),
        (PERU, "The capital of Peru is Lima.", True),
        (PERU, "lima.", True),
        (PERU, "**Lima**", True),
        (PERU, "It's Lima, on the coast of the Pacific.", True),
        (PERU, "The capital of Peru is Cusco.", False),
        (PERU, "", False),
    ],
    "numbers in words and digits": [
        (LEGS, "6", True),
        (LEGS, "An ant has six legs.", True),
        (LEGS, "Six!", True),
        (LEGS, "half a dozen", True),
        (LEGS, "They have sixteen legs.", False),
        (LEGS, "An ant has 60 legs.", False),
        (LEGS, "sixty-six", False),
        (LEGS, "6.5", False),
        (LEGS, "6.0", True),
        (LEGS, "An ant has eight legs.", False),
    ],
    "numbers with units": [
        (LEGS, "6 legs", True),
        (LEGS, "6legs", True),
        (EGGS, "7pcs", True),
        (TRAIN, "It is there at 5.30 pm.", True),
        (TRAIN, "at 17:30, that is half past five", True),
        (TRAIN, "at half past six", False),
        (TRAIN, "At 5:35.", False),
    ],
    "one number of several": [
        (LEGS, "6 or 8", False),
        (LEGS, "An ant has six or eight legs.", False),
        (LEGS, "4, maybe 6 legs or 8", False),
        (LEGS, "4 or 6", False),
        (LEGS, "6-8", False),
        (LEGS, "4–6 legs", False),
        (LEGS, "four to six legs", False),
        (LEGS, "between 4 and 6", False),
        (LEGS, "Between six and eight.", False),
        (LEGS, "6 or 8? It is 6.", True),
        (LEGS, "6, or six", True),
        (LEGS, "6 or so", True),
        (LEGS, "The 6-legged ant.", True),
        (EGGS, "12-5 = 7", True),
        (EGGS, "It falls from 12 to 7.", True),
        (WAR, "1939-1945", True),
        (WAY, "100 km or 62 miles", True),
    ],
    "the same number": [
        (WAY, "100km", True),
        (WAY, "100 kilometres", True),
        (WAY, "It is 100 miles away.", False),
        (WAY, "100", True),
        (COLD, "minus five", True),
        (COLD, "It is negative 5 degrees.", True),
        (COLD, "−5 °C", True),
        (COLD, "5", False),
        (COLD, "plus five", False),
        (EGGS, "minus seven", False),
        (EGGS, "12 minus 5 is 7", True),
        (EGGS, "Twelve minus 5 makes seven", True),
        (RATIO, "2.50", True),
        (RATIO, "$2.50", True),
        (RATIO, "2.05", False),
        (RATIO, "25", False),
        (HALF, "50 percent", True),
        (HALF, "fifty per cent of it", True),
        (HALF, "50 %", True),
        (HALF, "5 percent", False),
        (HALF, "50 people", False),
    ],
    "reasoning with numbers": [
        (EGGS, "12 - 5 = 7", True),
        (EGGS, "12 eggs less 5 broken ones makes 7 whole eggs.", True),
        (EGGS, "Of the 12 eggs 5 are broken, so there are seven left.", True),
        (EGGS, "12 - 5 = 6", False),
        (EGGS, "7 of them are broken, so 5 are whole.", False),
        (EGGS, "There are 12 eggs and 5 are broken.", False),
        (EGGS, "The tray holds 12. Taking away 5 leaves 8.", False),
        (LEGS, "A spider has eight legs, but an ant has six.", True),
        (LEGS, "A beetle has six legs, but an ant has eight.", False),
    ],
    "plurals and hyphens": [
        (BULB, "bulbs", True),
        (BULB, "You plant tulip-bulbs in autumn.", True),
        (SNACK, "pop-corn", True),
        (SNACK, "Pop corn", True),
        (SNACK, "corn", False),
        (BULB, "You plant a seed.", False),
    ],
    "misspellings": [
        (WARMTH, "a thermometr", True),
        (WARMTH, "thermomether", True),
        (WARMTH, "You hang up a barometer.", False),
        (WALL, "Chnia built it.", True),
        (PLURAL, "geeses", False),
        (PLURAL, "gooses", False),
        (COLOUR, "yelow", True),
        (STEAM, "steem", True),
        (STEAM, "It becomes a stream.", False),
    ],
    "short for it": [
        (STATES, "The US, of course", True),
        (STATES, "The U.S.", True),
        (VITAMIN, "C", True),
        (VITAMIN, "D", False),
        (METAL, "Fe", True),
        (METAL, "Au", False),
        (DAY, "Tue.", True),
        (COPY, "Press the Ctrl key and Z", True),
        (COPY, "Ctrl + Z", True),
        (COPY, "Ctrl+X", False),
    ],
    "denied": [
        (PERU, "Not Lima.", False),
        (PERU, "It is not Lima but Cusco.", False),
        (PERU, "It is not Cusco but Lima.", True),
        (PERU, "Lima isn't the capital.", False),
        (COLOUR, "A lemon is green, not yellow.", False),
        (COLOUR, "Yellow, not green.", True),
        (METAL, "Everything except iron.", False),
        (SILENT, "The K is not spoken.", True),
    ],
    "another answer first": [
        (PERU, "The capital of Peru is Cusco. Lima lies on the coast.", False),
        (PERU, "It's Cusco, which is older than Lima.", False),
        (NOBEL, "Albert Einstein discovered it. Marie Curie was a chemist.", False),
        (NOBEL, "It was Lise Meitner, a friend of Curie.", False),
        (COLOUR, "A ripe lemon is red. Bananas are yellow.", False),
    ],
    "the first, and then more": [
        (PERU, "Lima. Cusco was the capital of the Inca.", True),
        (NOBEL, "Marie Curie, who was born in Warsaw and worked in Paris.", True),
        (COLOUR, "Yellow; a lime is green.", True),
        (METAL, "Iron, though nickel is magnetic too.", True),
    ],
    "taken back": [
        (PERU, "Cusco. No, wait, it is Lima.", True),
        (PERU, "Lima. No, wait, it is Cusco.", False),
        (DAY, "Wednesday... sorry, that's wrong. Tuesday!", True),
        (LEGS, "Eight legs. Correction: six.", True),
        (LEGS, "Six legs. Correction: eight.", False),
    ],
    "a list without a choice": [
        (COLOUR, "Either green, yellow or red.", False),
        (PERU, "Maybe Lima, or Cusco, or Quito.", False),
        (NOBEL, "One of these: Meitner, Curie or Franklin.", False),
    ],
    "with a greeting": [
        (PERU, "Great question! The capital of Peru is Lima.", True),
        (SNACK, "Hello there! 🎉 That's popcorn!", True),
        (COLOUR, "Oh, I love lemons! They are **yellow**. 🍋", True),
    ],
    "something beside it": [
        (NAMED, "It is named after Gustave Eiffel.", True),
        (PERU, "It lies south of Lima.", False),
        (STEAM, "It becomes ice, unlike steam.", False),
        (WALL, "Some people say China, but actually it was Korea.", False),
    ],
}  # fmt: skip


MISSED = [
    (WALL, "Mongolia built it against China.", False),
    (METAL, "A magnet is made of copper, and a nail of iron.", False),
]
"""Who does what to whom, and what is said of another thing, is seen by their order alone."""


@pytest.mark.parametrize(
    ("asked", "answer", "found"),
    [
        pytest.param(*case, id=f"{group}: {case[1]}")
        for group, cases in CASES.items()
        for case in cases
    ]
    + [pytest.param(*case, marks=pytest.mark.xfail(strict=True)) for case in MISSED],
)
def test_a_fact_is_found_where_it_is_the_answer(asked: Asked, answer: str, found: bool) -> None:
    question, reference, fact = asked
    assert find_facts(answer, [fact], question, reference) == [found]


def test_the_reason_names_what_was_said_instead() -> None:
    question, reference, fact = PERU

    def why(answer: str) -> str:
        return judge_facts(answer, [fact], question, reference)[0].why

    assert why("Cusco") == "not mentioned"
    assert why("It is not Lima.") == "denied"
    assert why("It's Cusco. Lima is larger.") == "another answer comes first: Cusco"
    question, reference, fact = EGGS
    assert why("7 are broken, so it is 5.") == "the answer comes to 5"


def test_each_of_several_facts_is_looked_for() -> None:
    facts = [("positive", "plus"), ("negative", "minus")]
    question = "What are the two kinds of electric charge?"
    reference = "They are positive and negative."
    assert find_facts("plus and minus", facts, question, reference) == [True, True]
    assert find_facts("+ and −", facts, question, reference) == [True, True]
    assert find_facts("positive and neutral", facts, question, reference) == [True, False]


def test_without_a_question_a_wording_that_is_not_denied_is_enough() -> None:
    assert find_facts("Cusco is old. Lima is new. It is not Quito.", [["Lima"], ["Quito"]]) == [
        True,
        False,
    ]


ASKED = [PERU, LEGS, EGGS, TRAIN, COPY, VITAMIN, SNACK]


def test_a_number_that_is_not_decided_on_is_none_without_the_question_either() -> None:
    for answer, fact in (("8 or 10", ["8"]), ("8-10", ["8"]), ("100 miles", ["100 km", "100"])):
        assert find_facts(answer, [fact]) == [False]
    assert find_facts("8 or 10", [["8"], ["10"]]) == [False, False]
    assert find_facts("1939 to 1945", [["1939"], ["1945"]]) == [True, True]


@given(answer=st.text(), asked=st.sampled_from(ASKED))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_judged(answer: str, asked: Asked) -> None:
    question, reference, fact = asked
    for text in (answer, f"{answer}{fact[0]}", f"{fact[0]} {answer} {fact[0]}"):
        for why in judge_facts(text, [fact, fact], question, reference):
            assert isinstance(why.found, bool)
        find_facts(text, [fact])
    find_facts(fact[0], [[answer or "x"]], answer, answer)


@given(
    greeting=st.sampled_from(("Great question! ", "Sure! ", "Hello there! ", "Haha, nice! 😄 ")),
    case=st.sampled_from([case for cases in CASES.values() for case in cases]),
)
@settings(max_examples=200, deadline=None)
def test_a_greeting_changes_nothing(greeting: str, case: Case) -> None:
    (question, reference, fact), answer, found = case
    assert find_facts(greeting + answer, [fact], question, reference) == [found]


@pytest.mark.parametrize(
    ("answer", "fact", "found"),
    [
        ("hundred " * 500, "8", False),
        ("@! That is it.", "@", True),
        ("It is <.", "<", True),
        ("", "<", False),
        ("It is 1.5, in all 15", "1.5", False),
        ("法国的首都是巴黎。", "巴黎", True),
        ("バリ", "パリ", False),
    ],
)
def test_odd_texts_and_signs_are_read_as_they_are(answer: str, fact: str, found: bool) -> None:
    assert find_facts(answer, [[fact]], "Which is it?") == [found]
