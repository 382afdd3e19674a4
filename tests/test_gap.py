"""The gap between twins: which pairs are asked, what is told of them, and a whole evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluate_query_mutator import main
from query_mutator.base.errors import UserError
from query_mutator.data import Question, Twin, load_questions, load_twins, twins_of
from query_mutator.evaluation import statistics
from query_mutator.evaluation.gap import REWRITER, SCORE, Gap, find_gap
from query_mutator.evaluation.gap_text import gap_as_text, gap_sentence
from query_mutator.evaluation.measuring import UNCHANGED, Measured, Tried, fingerprint
from query_mutator.evaluation.pairs import choose_pairs
from query_mutator.operators import Operator
from query_mutator.servers.simulated import SimulatedServer
from tests.test_evaluation import FEW, figures
from tests.test_training import train

TIDY = Operator("tidy", edits=("filler",))
REPHRASE = Operator("rephrase", instruction="Rephrase it.")
SHORTEN = Operator("shorten", instruction="Shorten it.")


# Which pairs are asked


def question(number: int, *, messy: bool, **columns: str) -> Question:
    style = "messy" if messy else "clear"
    return Question(f"q{number}", f"question {number}", columns={"style": style, **columns})


MIXED = [question(number, messy=number % 2 == 0) for number in range(20)]
TWINS = {
    one.id: Twin(
        one.id, f"twin of {one.id}", "clear" if one.columns["style"] == "messy" else "chat"
    )
    for one in MIXED
}


def test_by_default_all_clear_twins_are_asked_and_few_messy_ones() -> None:
    pairs = choose_pairs(MIXED, TWINS, most=None, asked=40)
    assert sum(pair.twin == "clear" for pair in pairs) == 10
    assert sum(pair.twin == "messy" for pair in pairs) == 4, "a tenth of the questions asked"


@pytest.mark.parametrize(("most", "clear", "messy"), [(0, 0, 0), (6, 6, 0), (13, 10, 3)])
def test_of_a_number_of_pairs_those_that_cost_a_call_come_first(
    most: int, clear: int, messy: int
) -> None:
    pairs = choose_pairs(MIXED, TWINS, most=most, asked=40)
    assert [pair.twin for pair in pairs] == ["clear"] * clear + ["messy"] * messy
    assert len({pair.messy.id for pair in pairs}) == most


def test_more_pairs_hold_the_fewer_ones() -> None:
    few, many = (choose_pairs(MIXED, TWINS, most=most, asked=40) for most in (7, 15))
    assert {pair.clear.id for pair in few} <= {pair.clear.id for pair in many}


def test_a_twin_is_a_question_of_its_own_with_the_reference_of_the_other() -> None:
    asked = Question(
        "q1", "wat is it", "It is.", "food", "heldout", "m", (("is",),), {"style": "messy"}
    )
    (pair,) = choose_pairs([asked], {"q1": Twin("q1", "What is it?", "clear")}, most=None, asked=1)
    assert (pair.messy, pair.clear.id, pair.clear.question) == (asked, "q1~clear", "What is it?")
    assert pair.clear.columns == {"style": "clear"}
    assert fingerprint(pair.clear) != fingerprint(pair.messy)
    for kept in ("reference", "category", "split", "meaning", "key_facts"):
        assert getattr(pair.clear, kept) == getattr(asked, kept)


def test_the_shipped_twins_are_of_shipped_questions() -> None:
    twins = load_twins()
    known = {one.id: one for one in load_questions()}
    assert len(twins) > 1000
    assert all(
        (known[id].columns["style"] == "messy") == twin.is_clear for id, twin in twins.items()
    )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 2: not valid JSON"),
        ("[]", "line 2: not an object with id, style and twin"),
        ('{"id": "b", "style": "clear"}', "line 2: no 'twin' (it has: id, style)"),
        ('{"id": "b", "style": "chat", "twin": 7.5}', ""),
        ('{"id": "b", "style": "chat", "twin": ["x"]}', "line 2: 'twin' is not text"),
        ('{"id": "a", "style": "chat", "twin": "x"}', "line 2: 'a' has a twin already"),
    ],
)
def test_bad_twins_are_told_by_their_line(row: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "twins.jsonl"
    file.write_text('{"id": "a", "style": "clear", "hand": "m1", "twin": "What?"}\n' + row + "\n")
    if not said:
        assert load_twins(file)["b"].twin == "7.5"
        return
    with pytest.raises(UserError, match="has bad rows") as raised:
        load_twins(file)
    assert said in str(raised.value)


def test_a_users_own_file_has_twins_in_a_column() -> None:
    rows = [
        question(1, messy=True, twin="What?"),
        question(2, messy=False, twin="wat"),
        question(3, messy=False),
    ]
    found = twins_of(rows, "mine.jsonl")
    assert {id: (twin.twin, twin.is_clear) for id, twin in found.items()} == {
        "q1": ("What?", True),
        "q2": ("wat", False),
    }


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"twin": "What?"}, "its style is neither clear nor messy"),
        ({"twin": "What?", "style": "chat"}, "its style is neither clear nor messy"),
        ({"twin": "why", "style": "messy"}, "its twin is the question itself"),
        ({"twin": ["why"], "style": "messy"}, "'twin' is not text"),
    ],
)
def test_a_bad_twin_of_a_users_own_is_told_by_its_question(
    columns: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=r"mine.csv: question 'q'") as raised:
        twins_of([Question("q", "why", columns=columns)], "mine.csv")
    assert said in str(raised.value)


# What is told


def tried(score: float, facts: float | None = None, wording: float | None = None) -> Tried:
    found = {"facts": facts, "closeness": wording}
    terms = {name: {"value": value} for name, value in found.items() if value is not None}
    return Tried(score, terms, "", "", "", [], 1, 0, 0.1)


def measured(number: int, ways: dict[str, Tried], policy: Tried | None = None) -> Measured:
    return Measured(f"q{number}", "why?", f"meaning {number}", "c", "", ways, policy)


def pairs_of(count: int, **ways: float) -> list[tuple[Measured, Measured]]:
    """Pairs whose clear wording scores .8 and the messy one .4, each operator as given."""
    found = []
    for number in range(count):
        luck = 0.01 * (number % 5)
        messy = {UNCHANGED: tried(0.4 + luck)}
        messy |= {name: tried(score + luck) for name, score in ways.items()}
        clear = {UNCHANGED: tried(0.8 + 2 * luck)}
        found.append((measured(number, clear), measured(number, messy, tried(0.6 + luck))))
    return found


def told(count: int = 40) -> Gap:
    found = find_gap(
        pairs_of(count, tidy=0.5, rephrase=0.4, shorten=0.2), [TIDY, REPHRASE, SHORTEN]
    )
    assert found is not None
    return found


def test_the_gap_and_what_closes_it() -> None:
    gap = told()
    assert gap.sides[SCORE].clear - gap.sides[SCORE].messy == pytest.approx(0.42)
    shares = {
        closer.name: share.mean for closer in gap.closers if (share := closer.closes[SCORE].share)
    }
    gains = {"policy": 0.2, "tidy": 0.1, "rephrase": 0.0, "shorten": -0.2, REWRITER: -0.1}
    assert shares == {name: pytest.approx(gain / 0.42) for name, gain in gains.items()}
    assert {one.name for one in gap.closers if one.asks_mutator} == {
        "rephrase",
        "shorten",
        REWRITER,
    }


def test_the_sentence_names_the_policy_and_the_best_operator() -> None:
    said = gap_sentence(told(), "tidy")
    assert said.startswith("Asked clearly, the same 40 questions score +0.420 [")
    assert "the policy closes 48 % [" in said
    assert "always using tidy 24 % [" in said
    assert "always" not in gap_sentence(told(), UNCHANGED)


def test_a_single_operator_that_asks_the_mutator_is_the_rewriter_itself() -> None:
    gap = find_gap(pairs_of(10, tidy=0.5, rephrase=0.4), [TIDY, REPHRASE])
    assert gap is not None
    assert [closer.name for closer in gap.closers] == ["policy", "tidy", "rephrase"]
    table = "\n".join(gap_as_text(gap, UNCHANGED))
    assert "rephrase *" in table
    assert "* the mutator model rewrites" in table


def test_of_a_gap_that_may_be_none_no_share_is_told() -> None:
    rows = []
    for number in range(20):
        sides = [{UNCHANGED: tried(score), "tidy": tried(0.5)} for score in (0.4, 0.6)]
        clear, messy = sides if number % 2 else reversed(sides)
        rows.append((measured(number, clear), measured(number, messy, tried(0.5))))
    gap = find_gap(rows, [TIDY])
    assert gap is not None
    assert all(closer.closes[SCORE].share is None for closer in gap.closers)
    assert gap_sentence(gap, "tidy").startswith(
        "No gap is shown between clear and messy wording on 20 questions: +0.000 ["
    )
    assert "—" in "\n".join(gap_as_text(gap, "tidy"))


@pytest.mark.parametrize("count", [1, 4])
def test_a_few_pairs_show_no_gap(count: int) -> None:
    assert all(closer.closes[SCORE].share is None for closer in told(count).closers)
    assert gap_sentence(told(count), "tidy").startswith("No gap is shown")


def test_without_pairs_nothing_is_told() -> None:
    assert find_gap([], [TIDY]) is None


def test_facts_and_wording_have_gaps_of_their_own() -> None:
    """On questions without key facts only the wording is told."""
    rows = []
    for number in range(40):
        facts = [float(number % 4 > 0), 0.0] if number < 20 else [None, None]
        clear = {UNCHANGED: tried(0.8, facts[0], 0.9)}
        messy = {UNCHANGED: tried(0.3, facts[1], 0.5 + 0.01 * (number % 3))}
        policy = tried(0.5, facts[1], 0.7)
        rows.append((measured(number, clear), measured(number, messy, policy)))
    gap = find_gap(rows, [])
    assert gap is not None
    assert (gap.sides["facts"].clear, gap.sides["facts"].messy) == (0.75, 0.0)
    assert gap.sides["facts"].gap.groups == 20
    assert gap.sides["wording"].gap.groups == 40
    assert gap.closed_by("policy", "facts").gain.mean == 0
    wording = gap.closed_by("policy", "wording").share
    assert wording is not None
    assert wording.mean == pytest.approx(0.19 / 0.39, abs=0.01)
    assert "(facts +0.750 [" in gap_sentence(gap, UNCHANGED)


@pytest.mark.parametrize("count", [25, 100])
def test_the_intervals_of_shares_hold_what_they_promise(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)
    generator = np.random.default_rng(count)
    missed = made = 0
    for number in range(200):
        rows = []
        for pair in range(count):
            gap = float(np.clip(generator.normal(0.3, 0.3), -1, 1))
            ways = {UNCHANGED: tried(0.0)}
            for name in ("tidy", "rephrase"):
                closed = 0.6 * gap * generator.integers(2)
                ways[name] = tried(closed + generator.normal(0, 0.15))
            clear = measured(pair, {UNCHANGED: tried(gap)})
            rows.append((clear, measured(pair, ways, tried(0.3 * gap))))
        found = find_gap(rows, [TIDY, REPHRASE], seed=number)
        assert found is not None
        shares = [closer.closes[SCORE].share for closer in found.closers]
        if found.sides[SCORE].told:
            made += 1
            missed += not all(share and share.low <= 0.3 <= share.high for share in shares)
    assert made > 150
    assert missed <= 0.08 * made


# A whole evaluation


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Sums asked messily, each with its clear twin, and others the other way round."""
    rows = []
    for number in range(2, 42):
        clear, messy = f"What is {number} plus {number}?", f"um so whats {number} plus {number}"
        style = "clear" if number % 4 == 0 else "messy"
        asked, twin = (clear, messy) if style == "clear" else (messy, clear)
        rows.append(
            {"id": f"s{number}", "question": asked, "twin": twin, "style": style,
             "reference": f"The sum is {2 * number}.", "key_facts": [[str(2 * number)]],
             "split": "heldout" if number >= 20 else "train"}
        )  # fmt: skip
    file = tmp_path / "sums.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


@pytest.fixture
def adding() -> Iterator[SimulatedServer]:
    """A server that adds up what is asked clearly, and nothing else."""

    def answer(model: str, system: str, prompt: str) -> str:
        if not prompt.startswith("What is"):
            return "Could you say that again?"
        return f"The sum is {2 * int(prompt.split()[2])}."

    with SimulatedServer(slots=8, answer=answer) as running:
        yield running


def evaluated(server: SimulatedServer, own: Path, run: Path, *flags: str) -> dict[str, Any]:
    few = ["--dataset", str(own), "--only-operators", "qa,tidy", "--no-cache"]
    assert train(server, run, *few) == 0
    assert main([str(run), *flags]) == 0
    return figures(run)


def test_an_evaluation_tells_the_gap_and_what_closes_it(
    adding: SimulatedServer, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    found = evaluated(adding, own, run)["gap"]
    assert found["pairs"] == 16 + 4, "16 messy questions, and a tenth of all 40 as messy twins"
    assert found["sides"]["facts"] | {"gap": None} == {"clear": 1.0, "messy": 0.0, "gap": None}
    share = {one["name"]: one["closes"]["facts"]["share"]["mean"] for one in found["closers"]}
    assert (share["tidy"], share["qa"]) == (1.0, 0.0)
    shown = capsys.readouterr().out
    assert found["sentence"] in shown
    assert found["sentence"] in (run / "evaluation" / "evaluation.txt").read_text()

    adding.reset_stats()
    assert main([str(run)]) == 0
    assert adding.stats.generation_calls == 0, "the twins are kept with the other records"
    assert figures(run)["gap"] == found


def test_a_clear_twin_costs_one_call(adding: SimulatedServer, own: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert evaluated(adding, own, run, "--twins", "0")["gap"] is None
    adding.reset_stats()
    assert main([str(run), "--twins", "10"]) == 0
    assert adding.stats.generation_calls == 10
    assert figures(run)["gap"]["pairs"] == 10
    records = [json.loads(line) for line in (run / "evaluation" / "records.jsonl").open()][1:]
    twins = [record for record in records if record["id"].endswith("~clear")]
    assert [list(record["ways"]) for record in twins] == [[UNCHANGED]] * 10


def test_shipped_questions_have_shipped_twins(run: Path) -> None:
    assert main([str(run), *FEW, "--twins", "3"]) == 0
    gap = figures(run)["gap"]
    assert gap["pairs"] == 3
    assert "clarify" in {closer["name"] for closer in gap["closers"]}


def test_a_bad_twin_is_told_before_training(
    adding: SimulatedServer, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own.write_text(own.read_text().replace('"messy"', '"typed"'))
    assert train(adding, tmp_path / "run", "--dataset", str(own)) == 2
    said = capsys.readouterr().err
    assert "question 's2': it has a twin, but its style is neither clear nor messy" in said


def test_the_judge_compares_no_twins(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    few = ["--objective", "judge", "--only-operators", "qa"]
    assert train(server, run, *few) == 0
    assert main([str(run), "--twins", "5"]) == 2
    assert "clear and messy questions do not compare" in capsys.readouterr().err
    small = ["--num-questions", "2", "--num-training-questions", "2"]
    assert main([str(run), *small]) == 0
    assert figures(run)["gap"] is None
