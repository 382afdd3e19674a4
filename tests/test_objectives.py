"""What counts as a good answer, and why."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.data import Question
from query_mutator.english.facts import find_facts
from query_mutator.models.encoders import Encoder
from query_mutator.objectives import OBJECTIVES, Batch, Score, Weights, load_objective
from query_mutator.objectives.answer import WITHOUT_FACTS
from query_mutator.objectives.closeness import find_closeness
from query_mutator.runs.task import check_references

QUESTION = "How many legs does a spider have?"


def judge(encoder: Encoder, answer: str, *, rewritten: str = QUESTION, facts: bool = True) -> Score:
    objective = load_objective("answer", Weights())
    return objective(
        Batch(
            questions=[QUESTION],
            rewritten_questions=[rewritten],
            answers=[answer],
            references=["A spider has eight legs."],
            key_facts=[(("8", "eight"),) if facts else ()],
            encode=encoder.encode,
        )
    )[0]


@pytest.mark.parametrize(
    ("fact", "answer", "found"),
    [
        ("three", "It has three legs.", True),
        ("three", "There are twenty-three of them.", False),
        ("three", "There are thirty three of them.", False),
        ("three", "About three hundred.", False),
        ("one hundred", "One hundred and twenty.", False),
        ("one hundred", "One hundred, and no more.", True),
        ("twenty-three", "Twenty-three in all.", True),
        ("twenty", "one hundred twenty", False),
    ],
)
def test_a_number_in_words_is_not_found_in_a_larger_one(
    fact: str, answer: str, found: bool
) -> None:
    assert find_facts(answer, [[fact]]) == [found]


def test_the_reference_itself_scores_1(encoder: Encoder) -> None:
    assert judge(encoder, "A spider has eight legs.").total == pytest.approx(1.0, abs=1e-5)
    assert judge(encoder, "A spider has eight legs.", facts=False).total == pytest.approx(
        1.0, abs=1e-5
    )


def test_a_close_answer_without_the_fact_loses_the_facts_half(encoder: Encoder) -> None:
    wrong = judge(encoder, "A spider has six legs.")
    assert wrong.terms["facts"].value == 0
    assert wrong.terms["facts"].why == "missing: 8"
    assert wrong.terms["closeness"].why.startswith("the reference adds: 8; the answer has not: 8")
    assert wrong.total < 0.1


def test_without_key_facts_a_right_sentence_beats_a_near_miss(encoder: Encoder) -> None:
    right, near = "A spider has eight legs.", "A spider has six legs."
    assert judge(encoder, right, facts=False).total > 0.9
    assert judge(encoder, near, facts=False).total < 0.3
    assert judge(encoder, "Whales sleep.", facts=False).total < 0.1


HAIR = "Which protein are hair and fingernails mostly made of?"
KERATIN = "Hair and fingernails are mostly made of keratin."


@pytest.mark.parametrize(
    ("question", "reference", "echo"),
    [
        ("goose plural?", "The plural of goose is geese.", "The goose is a plural noun."),
        (HAIR, KERATIN, "Hair and fingernails are mostly made of protein."),
        (HAIR, KERATIN, HAIR),
        ("wich contry is sidney in", "Sydney is in Australia.", "Sydney is in a country."),
        (QUESTION, "A spider has eight legs.", "A spider has many legs."),
        ("Is the Earth flat or round?", "The Earth is round.", "The Earth is flat."),
        ('What is the plural of "knife"?', 'The plural of "knife" is "knives".', "knife"),
    ],
)
def test_an_echo_of_the_question_earns_nothing(question: str, reference: str, echo: str) -> None:
    assert find_closeness(question, reference, echo).value < 0.05


@pytest.mark.parametrize(
    "answer",
    [
        "keratin",
        "Keratin!",
        KERATIN,
        "They are mostly made of **keratin**.",
        "Hair and fingernails are made of keratin, a tough protein. Horns, hooves and feathers are "
        "made of it too. Nails grow three millimetres a month, and hair about a centimetre. It is "
        "dead when you see it: what lives of a hair is the root under the skin, where new cells "
        "are made day and night, for two to seven years, until the hair falls out and rests.",
    ],
)
def test_a_bare_fact_a_sentence_and_a_page_get_the_same(answer: str) -> None:
    assert find_closeness(HAIR, KERATIN, answer).value == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "collagen",
        "Hair and fingernails are mostly made of collagen.",
        "It is not keratin.",
        "Collagen, not keratin.",
        "They are made of keratin. Actually no, I was wrong: it is collagen.",
    ],
)
def test_a_near_miss_gets_less_than_half(answer: str) -> None:
    assert find_closeness(HAIR, KERATIN, answer).value < 0.5


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        (QUESTION, "A spider has eight legs.", "8"),
        ("How many bones are there?", "There are 206 bones.", "two hundred and six"),
        ("How many is it?", "It is 42.", "It comes to forty-two."),
        ("Which cheese is on a pizza?", "Mozzarella is on a pizza.", "mozarela"),
        ("What does it look like?", "It looks like a lighthouse.", "Like a light-house."),
        ("Which naval base?", "The naval base is Pearl Harbor.", "Pearl Harbour"),
        ("Where do tacos come from?", "Tacos come from Mexico.", "Tacos are Mexican."),
        ("Who wrote Oliver Twist?", "Charles Dickens wrote Oliver Twist.", "Dickens"),
        ("capital of peru??", "The capital of Peru is Lima.", "Not Cusco but Lima."),
    ],
)
def test_other_ways_to_write_it_are_understood(question: str, reference: str, answer: str) -> None:
    assert find_closeness(question, reference, answer).value > 0.9


@pytest.mark.parametrize(
    ("question", "reference", "right", "wrong"),
    [
        ("Which language has classes and pointers?", "C++", "It's C++.", "C"),
        ("Which language has classes and pointers?", "It is C++.", "C++", "C#"),
        ("Which language is from Redmond?", "C#", "C#", "C"),
        ("What is 8 - 50?", "-42", "8 - 50 = -42", "42"),
        ("How many degrees is it?", "It is −42 degrees.", "-42", "It is 42 degrees."),
        ("Can penguins fly?", "No, they can't.", "No.", "Yes."),
        ("Can penguins fly?", "No, they can't.", "No, they can’t", "Penguins are birds."),
        ("Can penguins fly?", "No, they cannot.", "Penguins can't fly.", "Yes, they can fly."),
        ("Is a whale a fish?", "No.", "No, it is a mammal.", "Absolutely!"),
        ("Is Rome in Italy?", "Yes, it is.", "Rome is in Italy.", "Rome isn't in Italy."),
        ("Is Rome in Italy?", "Yes", "Of course, Rome is in Italy.", "Not really."),
        ("Is Pluto a planet?", "No, it is a dwarf planet.", "A dwarf planet.", "Yes, a planet."),
    ],
)
def test_signs_minus_and_yes_or_no_are_words_too(
    question: str, reference: str, right: str, wrong: str
) -> None:
    assert find_closeness(question, reference, right).value > 0.9
    assert find_closeness(question, reference, reference).value > 0.9
    assert find_closeness(question, reference, wrong).value < 0.1


def test_a_bare_no_is_a_part_of_a_reference_that_says_more() -> None:
    reference = "No, Pluto is a dwarf planet."
    bare = find_closeness("Is Pluto a planet?", reference, "No.")
    assert 0.5 < bare.value < 1.0
    assert bare.why == "says no; the reference adds: dwarf; the answer has not: dwarf"
    assert find_closeness("Is Pluto a planet?", reference, "Yes, a dwarf planet.").value == 0.0


def test_one_thing_of_two_gets_a_part() -> None:
    question, reference = "What do you sew with?", "You need a needle and thread."
    both = find_closeness(question, reference, "A thread and a needle.")
    one = find_closeness(question, reference, "A needle.")
    assert both.value == 1.0
    assert 0.3 < one.value < 0.9
    assert one.why == "the reference adds: needle, thread; the answer has not: thread"


def test_a_reference_without_words_gives_nothing_to_be_close_to() -> None:
    assert find_closeness("Why?", "...", "So.").value == 0.0
    assert find_closeness("Why?", "So it is.", "").value == 0.0


def test_an_answer_without_key_facts_gets_less_than_half_for_wording(encoder: Encoder) -> None:
    fact = (("octet",),)
    batch = Batch(
        [QUESTION], [QUESTION], ["eight"], ["A spider has eight legs."], [fact], encoder.encode
    )
    terms = load_objective("answer", Weights())(batch)[0].terms
    assert terms["facts"].value == 0
    assert terms["closeness"].value == WITHOUT_FACTS < 0.5
    assert "key facts are missing" in terms["closeness"].why


def test_a_long_right_answer_beats_a_short_wrong_one(encoder: Encoder) -> None:
    long = "Spiders are arachnids and, unlike insects, which have six, they walk on eight legs."
    assert judge(encoder, long).total > judge(encoder, "Six legs.").total


def test_drift_costs_beyond_the_threshold_only(encoder: Encoder) -> None:
    same = judge(encoder, "Eight.", rewritten="How many legs does the spider have?")
    other = judge(encoder, "Eight.", rewritten="How do whales sleep?")
    assert same.terms["drift"].value == 0
    assert other.terms["drift"].value > 0.3
    assert other.total < same.total


def helpful(encoder: Encoder, question: str, answer: str) -> Score:
    batch = Batch([question], [question], [answer], [""], [()], encoder.encode)
    return load_objective("helpful", Weights())(batch)[0]


def test_helpful_pays_for_an_answer_to_the_question(encoder: Encoder) -> None:
    question = "What is the capital of Peru?"
    good = helpful(encoder, question, "The capital of Peru is Lima.")
    beside = helpful(encoder, question, "Whales sleep with half of their brain.")
    refusal = helpful(encoder, question, "I can't help with that.")
    hedged = helpful(encoder, question, "Peru is in America. I'd rather not name its capital.")
    assert good.total == 1.0
    assert beside.terms["on_point"].value < 0.2
    assert [score.terms["willing"].value for score in (good, refusal, hedged)] == [1.0, 0.0, 0.5]
    assert refusal.terms["willing"].why == "opening: 'i cannot help'"
    assert good.terms["on_point"].why.startswith("cosine of question and answer")


def test_helpful_pays_neither_for_length_nor_for_brevity(encoder: Encoder) -> None:
    question = "Which planet is closest to the Sun?"
    short = helpful(encoder, question, "The planet Mercury.")
    long = "The planet closest to the Sun is Mercury, a small world of rock without an atmosphere. "
    long += "It takes 88 days to go round the Sun, and has no moons."
    assert helpful(encoder, question, long).total == short.total == 1.0


@pytest.mark.parametrize(
    ("question", "answer", "points"),
    [
        ("What is the capital of Peru?", "What is the capital of Peru?", 0.0),
        ("capital of peru??", "The capital of Peru.", 0.0),
        ("wich contry is sidney in", "Could you tell me which country Sidney is in?", 0.0),
        ("Is the Earth flat or round?", "The Earth is round.", 1.0),
        ("Is a whale a fish?", "A whale is a fish.", 1.0),
        ("What is 7 + 7 - 7?", "7 + 7 - 7 is 7.", 1.0),
    ],
)
def test_helpful_pays_nothing_for_repeating_the_question(
    question: str, answer: str, points: float, encoder: Encoder
) -> None:
    term = helpful(encoder, question, answer).terms["on_point"]
    assert term.value == points
    assert ("beyond the question" in term.why) == (points == 0)


def test_only_answer_needs_references() -> None:
    made = {name: make(Weights()) for name, make in OBJECTIVES.items()}
    assert [name for name in made if made[name].needs_reference] == ["answer"]


def test_a_question_without_the_reference_it_needs_is_named() -> None:
    questions = [Question("a", "Why?", "So."), Question("b", "How?", "")]
    with pytest.raises(UserError, match="question 'b' has no reference") as caught:
        check_references(questions, "answer")
    assert "--objective helpful" in str(caught.value)
    check_references(questions[:1], "answer")


@pytest.mark.parametrize(
    ("answer", "fact", "found"),
    [
        ("It is 8.", "8", True),
        ("It is 18.", "8", False),
        ("It is 8.5.", "8", False),
        ("It is $8.00.", "8", True),
        ("It is 8.05.", "8", False),
        ("It is 1.8", "8", False),
        ("8kg", "8", True),
        ("There are 1,000 of them", "1000", True),
        ("1000", "1,000", True),
        ("In SÃO PAULO".replace("Ã", "Ã"), "Sao Paulo", True),
        ("the Parisian way", "Paris", False),
        ("press Ctrl+C now", "Ctrl+C", True),
        ("at 5:30 sharp", "5:30", True),
        ("", "x", False),
    ],
)
def test_facts_are_found_on_word_boundaries(answer: str, fact: str, found: bool) -> None:
    assert find_facts(answer, [[fact]]) == [found]


def test_a_users_function_may_return_numpy_numbers(tmp_path: Path, encoder: Encoder) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy\nfrom query_mutator.objectives import Score, Term\n"
        "def plain(batch): return numpy.float32([0.5])\n"
        "def terms(batch): return [Score({'a': Term(numpy.float32(0.5), 'x')})]\n"
    )
    batch = Batch([""], [""], ["abc"], [""], [()], encoder.encode)
    for name in ("plain", "terms"):
        score = load_objective(f"{file}:{name}", Weights())(batch)[0]
        assert [type(term.value) for term in score.terms.values()] == [float]


def test_a_users_function_may_return_plain_numbers(tmp_path: Path, encoder: Encoder) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def short(batch):\n    return [1 / (1 + len(a)) for a in batch.answers]\n")
    objective = load_objective(f"{file}:short", Weights())
    batch = Batch([""], [""], ["abc"], [""], [()], encoder.encode)
    assert objective(batch)[0].total == 0.25


def test_a_users_file_may_define_dataclasses_and_bear_any_name(
    tmp_path: Path, encoder: Encoder
) -> None:
    file = tmp_path / "random.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Mark:\n    points: float\n"
        "def f(batch): return [Mark(0.5).points for _ in batch.answers]\n"
    )
    objective = load_objective(f"{file}:f", Weights())
    assert objective(Batch([""], [""], ["abc"], [""], [()], encoder.encode))[0].total == 0.5
    assert hasattr(sys.modules["random"], "Random"), "it is still Python's own"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("anser", "did you mean 'answer'"),
        ("nowhere.py:f", "there is no file"),
        ("{tmp}/bad.py:f", "cannot be loaded: ZeroDivisionError"),
        ("{tmp}/good.py:missing", "has no function 'missing'"),
        ("{tmp}/latin.py:f", "is not UTF-8 text"),
        ("{tmp}/syntax.py:f", "was never closed (syntax.py, line 2)"),
        ("{tmp}/needs.py:f", "No module named 'nowhere'; install it"),
        ("{tmp}/leaves.py:f", "cannot be loaded: SystemExit"),
    ],
)
def test_an_unknown_objective_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0")
    (tmp_path / "good.py").write_text("def f(batch): return []")
    (tmp_path / "latin.py").write_bytes(b"NAME = 'caf\xe9'\ndef f(batch): return []")
    (tmp_path / "syntax.py").write_text("\ndef f(batch:")
    (tmp_path / "needs.py").write_text("import nowhere")
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    with pytest.raises(UserError) as caught:
        load_objective(name.replace("{tmp}", str(tmp_path)), Weights())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "return []",
        "raise KeyError('x')",
        "return ['a']",
        "return [float('nan')]",
        "return [1e300]",
        "import sys; sys.exit(0)",
        "from query_mutator.objectives import Score; return [Score({'a': 1.0})]",
    ],
)
def test_a_function_that_misbehaves_is_named(body: str, tmp_path: Path, encoder: Encoder) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"def f(batch):\n    {body}\n")
    objective = load_objective(f"{file}:f", Weights())
    with pytest.raises(UserError, match=r"mine\.py:f"):
        objective(Batch([""], [""], ["abc"], [""], [()], encoder.encode))


def test_a_file_of_before_imports_from_where_things_stood(tmp_path: Path, encoder: Encoder) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from model_client.calls import Call\n"
        "from objectives.base import Score, Term\n"
        "def mine(batch):\n"
        "    return [Score({'one': Term(1.0)}) for _ in batch.answers]\n"
    )
    found = load_objective(f"{file}:mine", Weights())
    (score,) = found(Batch(["q"], ["q"], ["a"], [""], [()], encoder.encode))
    assert score.total == 1.0
