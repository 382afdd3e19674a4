"""A rewrite that asks the same is free, and one that asks something else costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from query_mutator.models.encoders import Encoder
from query_mutator.objectives import Batch, Weights
from query_mutator.objectives.base import Term
from query_mutator.objectives.drift import drift_terms
from query_mutator.operators.edits import EDITS, apply_edits

SYDNEY = "whats teh capital of austrailia i always thougt sydney but my friend says no"
BERLIN = "berlin wall fall year"
EGG = "egg hard boil how long"
STORY = (
    "so we missed the ferry and my phone was wet and grandma laughed at us, anyway how many "
    "minutes are in two hours"
)
FREE = [
    ("colosseum -> city??", "Which city is the Colosseum in?"),
    (SYDNEY, "What is the capital of Australia?"),
    (SYDNEY, "Which city is the capital of Australia?"),
    (BERLIN, "In which year did the Berlin Wall fall?"),
    (BERLIN, "When did the Berlin Wall fall?"),
    (EGG, "How long does it take to hard-boil an egg?"),
    (EGG, "How long do I have to boil an egg until it is hard?"),
    (STORY, "How many minutes are in two hours?"),
    (STORY, "How many minutes are there in 2 hours?"),
    ("How tall is Mount Fuji?", "Could you please tell me how tall Mount Fuji is?"),
    ("How tall is Mount Fuji?", "What is the height of Mount Fuji?"),
    ("wich animel has the longst nek", "Which animal has the longest neck?"),
    ("hoo rote hamlit", "Who wrote Hamlet?"),
    ("ok hi there, um, so like what do bees drink, thanks", "What do bees drink?"),
    ("HELP!!! my sink is DROWNING me, which tool opens a blocked drain???",
     "Which tool opens a blocked drain?"),
    ("my brain is dying, what is nine times six", "What is 9 times 6?"),
    ("What is nine times six?", "What is 9 × 6?"),
    ("plural of sheep?", "What is the plural of sheep?"),
    ("opposite of hot", "What is the opposite of hot?"),
    ("What do you call a female lion?", "What is a female lion called?"),
    ("What do you call a female lion?", "What is the name for a female lion?"),
    ("Name the longest river in Africa.", "What is the longest river in Africa?"),
    ("How many players are in a soccer team?", "What is the number of players in a soccer team?"),
    ("Who was the first president of the United States?",
     "Which person was the first president of the United States?"),
    ("In which country is the city of Kyoto?", "Which country is the city of Kyoto in?"),
    ("Where is the Colosseum?", "Where can the Colosseum be found?"),
    ("Why do leaves turn yellow in autumn?", "Why do the leaves become yellow in the fall?"),
    ("How do I unclog a toilet without a plunger?", "How can I unclog a toilet without a plunger?"),
    ("Please to say, the bird which is sleeping in the day and hunts in the night?",
     "Which bird sleeps during the day and hunts at night?"),
    ("Is a tomato a fruit?", "is a tomato a fruit"),
    ("how much is 20 percent of 50", "What is 20 percent of 50?"),
    ("We rented a boat, it had a hole, we laughed a lot. What do you call the front of a boat?",
     "What is the front of a boat called?"),
    ("What is the capital of Peru?", "what's the capital of peru"),
    ("which planet is the red one??", "Which planet is called the red planet?"),
    ("train leaves 8:15 takes 50 min arrives when", "When does a train arrive that leaves at 8:15 "
     "and takes 50 minutes?"),
]  # fmt: skip
COSTS = [
    ("Is 5 > 3?", "Is 5 < 3?"),
    ("What is √16?", "What is 16?"),
    (SYDNEY, "What is the capital of Sydney?"),
    (SYDNEY, "Why does my friend say no?"),
    (BERLIN, "What is the opposite of Berlin Wall?"),
    (BERLIN, "What is the Berlin Wall?"),
    (BERLIN, "In which year was the Berlin Wall built?"),
    (EGG, "What is an egg hard boil?"),
    (STORY, "How many minutes are in three hours?"),
    (STORY, "How do I dry a wet phone?"),
    (STORY, "How many seconds are in two hours?"),
    ("How tall is Mount Fuji?", "How tall is Mount Everest?"),
    ("How tall is Mount Fuji?", "How old is Mount Fuji?"),
    ("How tall is Mount Fuji?", "Where is Mount Fuji?"),
    ("How tall is Mount Fuji?", "Mount Fuji is 3,776 meters tall."),
    ("wich animel has the longst nek", "Which animal has the shortest neck?"),
    ("wich animel has the longst nek", "How long is the neck of a giraffe?"),
    ("hoo rote hamlit", "Who wrote Macbeth?"),
    ("hoo rote hamlit", "When was Hamlet written?"),
    ("What is nine times six?", "What is nine times seven?"),
    ("What is nine times six?", "What is nine plus six?"),
    ("What is 12 minus 5?", "What is 5 minus 12?"),
    ("plural of sheep?", "What is the plural of goose?"),
    ("What do you call a female lion?", "What do you call a male lion?"),
    ("What do you call a female lion?", "What does a female lion eat?"),
    ("Name the longest river in Africa.", "Name the longest river in Asia."),
    ("Name the longest river in Africa.", "Name the second longest river in Africa."),
    ("Name the longest river in Africa.", "How long is the longest river in Africa?"),
    ("How many players are in a soccer team?", "How many players are in two soccer teams?"),
    ("How many players are in a soccer team?", "How many players are in a rugby team?"),
    ("Who was the first president of the United States?",
     "Who was the last president of the United States?"),
    ("Who was the first president of the United States?",
     "When was the first president of the United States elected?"),
    ("Which is heavier, iron or gold?", "Which is lighter, iron or gold?"),
    ("Why do leaves turn yellow in autumn?", "When do leaves turn yellow?"),
    ("How do I unclog a toilet without a plunger?", "How do I unclog a toilet with a plunger?"),
    ("Which birds can fly?", "Which birds cannot fly?"),
    ("What comes before Tuesday?", "What comes after Tuesday?"),
    ("Which metal does not rust?", "Which metal does rust?"),
    ("Is a tomato a fruit?", "Is a tomato healthy?"),
    ("how much is 20 percent of 50", "What is 50 percent of 200?"),
    ("What is the capital of Peru?", "How do whales sleep?"),
    ("What is the capital of Peru?", "What is the currency of Peru?"),
    ("Which gas turns into a liquid here?", "Which liquid turns into a gas here?"),
    ("What is the first letter of the alphabet?", "What is the last letter of the alphabet?"),
]  # fmt: skip


MISSED = [
    (EGG, "How do you peel a hard-boiled egg?"),
    ("Name the longest river in Africa.", "What is the longest river?"),
    (SYDNEY, "What is the capital of Austria?"),
    ("Why do leaves turn yellow in autumn?", "Why do leaves fall in autumn?"),
]


def drifts(encoder: Encoder, pairs: list[tuple[str, str]], **weights: float) -> list[Term]:
    questions, rewrites = ([pair[side] for pair in pairs] for side in (0, 1))
    empty = [""] * len(pairs)
    batch = Batch(questions, rewrites, empty, empty, [()] * len(pairs), encoder.encode)
    return drift_terms(batch, Weights(**weights))


@pytest.mark.parametrize(("question", "rewrite"), FREE)
def test_asking_the_same_is_free(encoder: Encoder, question: str, rewrite: str) -> None:
    (term,) = drifts(encoder, [(question, rewrite)])
    assert term.value == 0, term.why
    assert term.why in ("asks the same", "the same words")


@pytest.mark.parametrize(("question", "rewrite"), COSTS)
def test_asking_something_else_costs(encoder: Encoder, question: str, rewrite: str) -> None:
    (term,) = drifts(encoder, [(question, rewrite)])
    assert term.value > 0
    assert term.why not in ("asks the same", "the same words")


@pytest.mark.xfail(strict=True, reason="one word decides, and it is near what was asked")
@pytest.mark.parametrize(("question", "rewrite"), MISSED)
def test_what_is_still_missed_should_cost(encoder: Encoder, question: str, rewrite: str) -> None:
    (term,) = drifts(encoder, [(question, rewrite)])
    assert term.value > 0


@pytest.mark.parametrize("question", [question for question, _ in FREE])
def test_the_shipped_edits_are_free(encoder: Encoder, question: str) -> None:
    edited = [apply_edits(question, names) for names in (tuple(EDITS), *((one,) for one in EDITS))]
    terms = drifts(encoder, [(question, rewrite) for rewrite in edited])
    assert [term.value for term in terms] == [0] * len(edited)


def test_the_reason_says_what_changed(encoder: Encoder) -> None:
    changed = [
        ("What is 7 plus 8?", "What is 7 plus 9?"),
        ("How tall is Mount Fuji?", "Why is Mount Fuji tall?"),
        ("Which is heavier, iron or gold?", "Which is lighter, iron or gold?"),
        ("Which birds can fly?", "Which birds cannot fly?"),
        (SYDNEY, "What is the capital of Sydney?"),
    ]
    number, kind, opposite, negation, aside = (term.why for term in drifts(encoder, changed))
    assert number.startswith("another number: 8 → 9")
    assert kind.startswith("asks for a reason, not a measure")
    assert "the opposite: 'heavier' → 'lighter'" in opposite
    assert "negation" in negation
    assert "'sydney' is asked about, not 'australia'" in aside


def test_the_cost_grows_evenly_from_the_threshold_on(encoder: Encoder) -> None:
    pair = [("What is the capital of Peru?", "How do whales sleep?")]
    (usual,), (late,), (never,) = (
        drifts(encoder, pair, drift_threshold=threshold) for threshold in (0.2, 0.9, 1.5)
    )
    drift = 0.2 + 0.8 * usual.value
    assert late.value == pytest.approx(max(0.0, (drift - 0.9) / 0.1))
    assert never.value == 0


def test_drift_is_weighed_by_its_flag(encoder: Encoder) -> None:
    (term,) = drifts(encoder, [("Why?", "Why?")], drift=0.3)
    assert (term.value, term.weight) == (0, -0.3)


def test_nothing_asked_drifts_most(encoder: Encoder) -> None:
    (term,) = drifts(encoder, [("What is 7 plus 8?", " ")])
    assert (term.value, term.why) == (1, "nothing is asked")


def test_other_languages_are_compared_by_their_embeddings(encoder: Encoder) -> None:
    german = "Was ist die Hauptstadt von Frankreich?"
    same, other = drifts(
        encoder,
        [
            (german, "Welche Stadt ist die Hauptstadt von Frankreich?"),
            (german, "Wie lange schlafen junge Katzen nachts?"),
        ],
    )
    assert same.value == 0
    assert other.value > 0
    assert other.why.startswith("cosine")


def test_another_encoder_changes_nothing(encoder: Encoder) -> None:
    """MiniLM is loaded beside it, as the weights were learned on its cosines."""
    pairs = [*FREE[:4], *COSTS[:4]]
    questions, rewrites = ([pair[side] for pair in pairs] for side in (0, 1))
    empty = [""] * len(pairs)

    def other(texts: Sequence[str]) -> np.ndarray:
        rows = np.array([[len(text), text.count(" ") + 1.0] for text in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    batch = Batch(questions, rewrites, empty, empty, [()] * len(pairs), other)
    values = [term.value for term in drift_terms(batch, Weights())]
    assert values == pytest.approx([term.value for term in drifts(encoder, pairs)], abs=1e-4)


def test_of_a_rewrite_only_the_rewrite_is_embedded(encoder: Encoder) -> None:
    asked: list[str] = []

    def encode(texts: Sequence[str]) -> np.ndarray:
        asked.extend(texts)
        return encoder.encode(texts)

    rewrites = [rewrite for question, rewrite in FREE if question == STORY]
    empty = [""] * len(rewrites)
    questions = [STORY] * len(rewrites)
    drift_terms(Batch(questions, rewrites, empty, empty, [()] * len(rewrites), encode), Weights())
    others = set(asked) - {STORY, *rewrites}
    assert len(others) <= 3, "the question as spelt, where it asks, and the encoder's probe"


@pytest.mark.parametrize("text", ["a" * 5000, "who " * 3000, "9" * 3000, "?" * 3000, "é 1,2.3:4"])
def test_odd_texts_are_compared_too(encoder: Encoder, text: str) -> None:
    terms = drifts(encoder, [(text, "What is 7 plus 8?"), ("What is 7 plus 8?", text)])
    assert all(0 <= term.value <= 1 for term in terms)
