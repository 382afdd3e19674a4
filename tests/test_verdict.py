"""What an evaluation concludes: intervals, comparisons and the sentence at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from query_mutator.evaluation import statistics
from query_mutator.evaluation.comparison import (
    Findings,
    Way,
    best_single,
    compare,
    score_and_length,
)
from query_mutator.evaluation.measuring import UNCHANGED, Measured, Tried
from query_mutator.evaluation.report import as_text
from query_mutator.evaluation.statistics import Difference, paired_differences
from query_mutator.evaluation.verdict import CANNOT_TELL, HELPS, NO_HARM, NO_HELP, decide, judge

SIMULATED_EVALUATIONS = 200


def tried(score: float, *operators: str, calls: int = 1) -> Tried:
    return Tried(score, {}, "prompt", "question", f"scores {score}", list(operators), calls, 0, 0.5)


def measured(
    number: int, unchanged: float, by_operator: dict[str, float], policy: Tried | None
) -> Measured:
    ways = {UNCHANGED: tried(unchanged)}
    ways |= {name: tried(score, name) for name, score in by_operator.items()}
    category = f"c{number % 2}"
    return Measured(f"q{number}", "why?", f"meaning {number}", category, "", ways, policy)


def last(_: Measured, answers: Sequence[Tried]) -> list[float]:
    """Rates the unchanged question lowest, and of two operators the second higher."""
    return [float(place) for place in range(len(answers))]


@pytest.mark.parametrize("size", [25, 100, 250])
@pytest.mark.parametrize("kind", ["often equal", "skewed", "bounded"])
def test_intervals_exclude_0_rarely_where_there_is_no_difference(
    size: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)
    generator = np.random.default_rng([size, len(kind)])
    wrong = family_wrong = 0
    for number in range(SIMULATED_EVALUATIONS):
        columns = {name: no_difference(kind, size, generator) for name in "abcd"}
        alone = paired_differences({"a": columns["a"]}, seed=number)["a"]
        wrong += alone.above_0 or alone.below_0
        together = paired_differences(columns, seed=number).values()
        family_wrong += any(one.above_0 or one.below_0 for one in together)
    assert wrong <= 0.08 * SIMULATED_EVALUATIONS
    assert family_wrong <= 0.09 * SIMULATED_EVALUATIONS


def no_difference(kind: str, size: int, generator: np.random.Generator) -> np.ndarray:
    """Differences of scores as they occur, with a true mean of 0."""
    if kind == "often equal":  # the policy leaves most questions alone
        return (
            generator.choice([-1, 1], size)
            * generator.random(size)
            * (generator.random(size) < 0.3)
        )
    if kind == "skewed":  # many small losses, a few large gains
        return np.where(generator.random(size) < 0.2, 0.4, -0.1) + generator.normal(0, 0.05, size)
    return generator.choice([0.0, 0.5, 1.0], size) - generator.choice([0.0, 0.5, 1.0], size)


def test_whole_evaluations_rarely_find_a_difference_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)
    generator = np.random.default_rng(4)
    found = 0
    for _ in range(SIMULATED_EVALUATIONS):
        rows = []
        for number in range(60):
            scores = np.clip(generator.normal(0.5, 0.3) + generator.normal(0, 0.2, 4), 0, 1)
            by_operator = {"a": float(scores[1]), "b": float(scores[2])}
            policy = tried(float(scores[3]), "a", calls=2)
            rows.append(measured(number, float(scores[0]), by_operator, policy))
        gain = compare(rows, rows, last).against(UNCHANGED)
        found += gain.above_0 or gain.below_0
    assert found <= 0.08 * SIMULATED_EVALUATIONS


def test_a_real_difference_is_found() -> None:
    generator = np.random.default_rng(0)
    found = paired_differences({"gain": generator.normal(0.1, 0.3, 250)})["gain"]
    assert found.above_0
    assert found.low < found.mean < found.high


def test_a_resample_that_misses_what_varies_does_not_widen_the_interval_beyond_all_bounds() -> None:
    rare = [-1.0, -0.448, -0.0047] + [0.0] * 17
    usual = [0.1, -0.1, 0.2, -0.2] * 5
    found = paired_differences({"rare": rare, "usual": usual})
    assert all(-1 < one.low < one.high < 1 for one in found.values())
    assert found["usual"].high - found["usual"].low < 0.4


def test_questions_that_share_a_meaning_count_once() -> None:
    values = np.random.default_rng(1).normal(0.05, 0.3, 40)
    alone = paired_differences({"gain": values})["gain"]
    repeated = paired_differences(
        {"gain": np.repeat(values, 5)}, groups=[str(n // 5) for n in range(200)]
    )["gain"]
    assert repeated.groups == 40
    assert repeated.mean == pytest.approx(alone.mean)
    assert repeated.error == pytest.approx(alone.error)


def test_more_comparisons_make_wider_intervals() -> None:
    generator = np.random.default_rng(2)
    columns = {str(number): generator.normal(0, 0.3, 100) for number in range(10)}
    alone = paired_differences({"0": columns["0"]})["0"]
    among = paired_differences(columns)["0"]
    assert among.high - among.low > 1.2 * (alone.high - alone.low)


def test_columns_that_never_differ_have_no_width_and_disturb_no_other() -> None:
    found = paired_differences({"same": np.zeros(30), "other": np.linspace(-1, 1, 30)})
    assert (found["same"].low, found["same"].high) == (0, 0)
    assert math.isfinite(found["other"].critical)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_few_equal_questions_prove_nothing(count: int) -> None:
    found = paired_differences({"gain": [0.5] * count})["gain"]
    assert judge(found, 0.02)[0] == CANNOT_TELL


def difference(low: float, high: float, *, groups: int = 100) -> Difference:
    mean = (low + high) / 2
    return Difference(mean, low, high, (high - low) / 4, 2.0, groups)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.01, 0.09, HELPS),
        (-0.01, 0.05, NO_HARM),
        (-0.2, -0.05, NO_HELP),
        (-0.05, 0.01, NO_HELP),
        (-0.01, 0.01, NO_HELP),
        (0.005, 0.015, HELPS),
        (-0.1, 0.2, CANNOT_TELL),
    ],
)
def test_the_outcome_follows_from_the_interval(low: float, high: float, outcome: str) -> None:
    assert judge(difference(low, high), 0.02)[0] == outcome


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.01, 0.03, HELPS),
        (0.0, 0.0, NO_HELP),
        (-0.02, 0.0, NO_HELP),
        (0.0, 0.02, NO_HARM),
        (-0.01, 0.01, CANNOT_TELL),
    ],
)
def test_without_a_margin_only_0_counts(low: float, high: float, outcome: str) -> None:
    assert judge(difference(low, high), 0.0)[0] == outcome


def test_no_number_of_questions_shows_a_difference_that_is_0() -> None:
    assert judge(difference(-0.1, 0.1), 0.0) == (CANNOT_TELL, None)
    assert judge(paired_differences({"gain": [0.5]})["gain"], 0.02) == (CANNOT_TELL, None)


def test_a_few_equal_questions_say_nothing_of_how_many_would_do() -> None:
    few = paired_differences({"gain": [0.0] * 5})["gain"]
    assert judge(few, 0.02) == (CANNOT_TELL, None)
    sentence = decide(compared(few, few)).sentence
    assert "; all changed alike, and fewer than 10 that do tell nothing of others." in sentence
    assert "would be needed" not in sentence
    enough = paired_differences({"gain": [0.0] * statistics.FEWEST_EQUAL})["gain"]
    assert judge(enough, 0.02)[0] == NO_HELP


def test_where_it_cannot_tell_it_says_how_many_questions_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 1000)
    generator = np.random.default_rng(3)
    few = paired_differences({"gain": generator.normal(0.15, 0.35, 20)})["gain"]
    outcome, needed = judge(few, 0.02)
    assert outcome == CANNOT_TELL
    assert needed is not None
    found = [
        paired_differences({"gain": generator.normal(few.mean, 0.35, needed)})["gain"].above_0
        for _ in range(40)
    ]
    assert np.mean(found) > 0.5


@pytest.mark.parametrize("mean", [-0.1, -0.05, -0.01, 0.0, 0.01, 0.019, 0.021, 0.1])
def test_that_many_questions_settle_it(mean: float) -> None:
    spread, margin, few = 0.5, 0.02, 25
    error = spread / math.sqrt(few)
    now = Difference(mean, mean - 2 * error, mean + 2 * error, error, 2.0, few)
    outcome, needed = judge(now, margin)
    assert outcome == CANNOT_TELL
    assert needed is not None
    settled, found = 0, np.random.default_rng(5).normal(mean, spread / math.sqrt(needed), 1000)
    for value in found:
        reach = 2 * spread / math.sqrt(needed)
        then = Difference(value, value - reach, value + reach, reach / 2, 2.0, needed)
        outcome = judge(then, margin)[0]
        settled += outcome == HELPS if mean >= margin else outcome != CANNOT_TELL
    assert settled / 1000 > 0.77
    if abs(mean) >= margin:  # and fewer would not do
        assert settled / 1000 < 0.83


def comparison() -> Findings:
    """The policy takes `good` where it helps; `good` alone helps half of the questions."""
    rows = []
    for number in range(80):
        helped = number % 2 == 0
        by_operator = {"good": 0.9 if helped else 0.3, "bad": 0.2}
        policy = tried(0.9, "good", calls=2) if helped else tried(0.5)
        rows.append(measured(number, 0.5, by_operator, policy))
    return compare(rows, rows, last)


def test_the_policy_is_compared_with_every_simple_alternative() -> None:
    found = comparison()
    scores = {way.name: way.score for way in found.ways}
    assert scores["policy"] == pytest.approx(0.7)
    assert scores["unchanged"] == pytest.approx(0.5)
    assert scores["random operator"] == pytest.approx((0.6 + 0.2) / 2)
    assert scores["best single: good"] == pytest.approx(0.6)
    assert scores["oracle"] == pytest.approx(0.7)
    assert found.against("best single: good").mean == pytest.approx(0.1)
    assert {way.name for way in found.operators} == {"good", "bad"}
    assert found.chosen == {"good": 0.5, UNCHANGED: 0.5}


def test_best_of_n_has_as_many_answers_as_the_policy_and_no_reference() -> None:
    found = comparison()
    (best_of,) = [way for way in found.ways if way.name.startswith("best of 2")]
    assert best_of.target_calls == 2
    # `last` takes the operator's answer: the mean over both operators.
    assert best_of.score == pytest.approx(0.4)


def test_the_best_single_operator_is_chosen_on_training_questions() -> None:
    training = [measured(0, 0.5, {"a": 0.9, "b": 0.1}, None)]
    heldout = [measured(1, 0.5, {"a": 0.1, "b": 0.9}, tried(0.9, "b", calls=2))]
    assert best_single(training) == "a"
    assert compare(heldout, training, last).best_single == "a"


def test_the_verdict_is_one_plain_sentence_about_the_policy() -> None:
    verdict = decide(comparison())
    assert verdict.outcome == HELPS
    assert verdict.sentence.startswith("The policy helps: on 80 questions it was not trained on")
    assert "better than always using good" in verdict.sentence


def compared(gain: Difference, lead: Difference, *, single: str = "good") -> Findings:
    """Eighty questions on which the policy has this lead over unchanged and the best single."""
    leads = {UNCHANGED: gain, f"best single: {single}": lead if single != UNCHANGED else gain}
    ways = [Way(name, 0.5, 1.0, 0.0, 0.1, difference) for name, difference in leads.items()]
    return Findings(80, tuple(ways), (), single, 10, (), {}, None, False)


@pytest.mark.parametrize(
    ("gain", "sentence"),
    [
        (
            difference(0.02, 0.06),
            "The policy helps: {asked}, answers score +0.040 [+0.020, +0.060] higher than "
            "unchanged. It is as good as always using good (+0.000 [-0.010, +0.010]).",
        ),
        (
            difference(0.005, 0.015),
            "The policy helps, by less than the 0.02 that nobody would miss: {asked}, answers "
            "score +0.010 [+0.005, +0.015] higher than unchanged. It is as good as always using "
            "good (+0.000 [-0.010, +0.010]).",
        ),
        (
            difference(-0.01, 0.05),
            "The policy does no harm, and is not shown to help: {asked}, the change is "
            "+0.020 [-0.010, +0.050].",
        ),
        (
            difference(-0.05, 0.01),
            "The policy does not help: {asked}, no gain above 0.02 (-0.020 [-0.050, +0.010]).",
        ),
        (
            difference(-0.08, -0.02),
            "The policy does not help: {asked}, it makes answers worse (-0.050 [-0.080, -0.020]).",
        ),
        (
            difference(-0.1, 0.2, groups=40),
            "Cannot tell with so few questions: {asked}, the change is +0.050 [-0.100, +0.200]; "
            "about 1,454 would be needed.",
        ),
        (
            Difference(0.5, -math.inf, math.inf, 0.0, math.inf, 1),
            "Cannot tell with so few questions: {asked}, the change is +0.500.",
        ),
    ],
)
def test_every_outcome_has_its_sentence(gain: Difference, sentence: str) -> None:
    verdict = decide(compared(gain, difference(-0.01, 0.01)))
    assert verdict.sentence == sentence.format(asked="on 80 questions it was not trained on")


@pytest.mark.parametrize(
    ("available", "said"),
    [
        (1453, "; about 1,454 would be needed, more than the 1,453 that there are."),
        (1454, "; about 1,454 would be needed."),
    ],
)
def test_it_says_where_more_would_be_needed_than_there_are(available: int, said: str) -> None:
    found = compared(difference(-0.1, 0.2, groups=40), difference(-0.01, 0.01))
    assert decide(found, available=available).sentence.endswith(said)


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        (difference(0.01, 0.03), "It is better than always using good (+0.020"),
        (difference(-0.03, -0.01), "It is worse than always using good (-0.020"),
        (difference(-0.01, 0.05), "It is as good as always using good (+0.020"),
        (difference(-0.1, 0.1), "It cannot be told apart from always using good (+0.000"),
    ],
)
def test_a_policy_that_helps_is_put_beside_the_best_single_operator(
    lead: Difference, said: str
) -> None:
    assert said in decide(compared(difference(0.02, 0.06), lead)).sentence


def test_where_no_operator_is_better_than_unchanged_it_is_said() -> None:
    gain = difference(0.02, 0.06)
    verdict = decide(compared(gain, gain, single=UNCHANGED))
    assert "No single operator was better than unchanged" in verdict.sentence


def answered(score: float, words: int, facts: float | None = None) -> Tried:
    terms = {} if facts is None else {"facts": {"value": facts}}
    return Tried(score, terms, "", "", "word " * words, [], 1, 0, 0.1)


def test_an_objective_that_pays_for_brevity_is_found_out() -> None:
    def answers(pays: float) -> list[list[Tried]]:
        made = []
        for number in range(60):
            facts, words = float(number % 2), 5 + number % 7 + 30 * (number % 2)
            score = 0.5 * facts - pays * words + 0.01 * (number % 5)
            made.append(answered(score, words, facts))
        return [made[start : start + 6] for start in range(0, 60, 6)]

    assert abs(score_and_length(answers(0.0)) or 0.0) < 0.2
    assert (score_and_length(answers(0.01)) or 0.0) < -0.8


def test_easy_questions_with_brief_answers_do_not_look_like_pay_for_brevity() -> None:
    generator = np.random.default_rng(6)
    made = []
    for number in range(50):
        easy = number % 2
        made.append(
            [
                answered(0.9 * easy + generator.normal(0, 0.02), int(generator.integers(40)) + 5)
                if easy
                else answered(generator.normal(0, 0.02), int(generator.integers(40)) + 105)
                for _ in range(8)
            ]
        )
    assert abs(score_and_length(made) or 0.0) < 0.2


def test_answers_that_do_not_vary_have_no_correlation() -> None:
    assert score_and_length([[answered(0.1, 5)] * 3, [answered(0.9, 9)] * 3]) is None


def test_facts_are_named_only_where_there_are_some() -> None:
    gain = difference(0.02, 0.06)
    for known in (True, False):
        found = replace(
            compared(gain, gain), score_and_length=0.1, facts_known=known, categories=()
        )
        assert ("given its facts" in as_text(found, decide(found))) == known


def test_best_of_n_is_never_asked_less_often_than_the_policy() -> None:
    rows = []
    for number in range(8):
        policy = tried(0.5, "a", calls=3 if number < 4 else 2)
        rows.append(measured(number, 0.5, {"a": 0.1, "b": 0.2, "c": 0.9}, policy))
    rated: list[int] = []

    def rate(_: Measured, answers: Sequence[Tried]) -> list[float]:
        rated.append(len(answers))
        return [one.score for one in answers]

    (best_of,) = [way for way in compare(rows, rows, rate).ways if way.name.startswith("best of")]
    assert best_of.name.startswith("best of 3")
    assert best_of.target_calls == 3
    assert rated == [4] * 8, "each way is rated once"


def test_categories_are_told_apart() -> None:
    gains = {gain.category: gain for gain in comparison().categories}
    assert gains["c0"].difference.mean == pytest.approx(0.4)
    assert gains["c1"].difference.mean == pytest.approx(0.0)


UP, DOWN, NOWHERE = difference(0.02, 0.06), difference(-0.06, -0.02), difference(-0.03, 0.05)


@pytest.mark.parametrize(
    ("gain", "facts", "wording", "said"),
    [
        (UP, NOWHERE, UP, "higher than unchanged, shown for wording alone: facts +0.010 "
         "[-0.030, +0.050], wording +0.040 [+0.020, +0.060]. It cannot be told apart"),
        (UP, UP, NOWHERE, ", shown for facts alone: facts +0.040"),
        (UP, UP, UP, ", by facts and wording: facts +0.040"),
        (UP, DOWN, UP, "unchanged. Facts fell, wording rose: facts -0.040"),
        (UP, NOWHERE, NOWHERE, ". Neither facts nor wording is shown to have moved: facts"),
        (DOWN, NOWHERE, DOWN, "(-0.040 [-0.060, -0.020]), shown for wording alone: facts"),
        (NOWHERE, UP, NOWHERE, ". Facts rose, wording is not shown to have moved: facts"),
        (difference(-0.2, 0.2), NOWHERE, UP, " would be needed. Facts are not shown to have moved, "
         "wording rose: facts"),
    ],
)  # fmt: skip
def test_the_sentence_says_whether_facts_or_wording_moved(
    gain: Difference, facts: Difference, wording: Difference, said: str
) -> None:
    found = replace(compared(gain, NOWHERE), apart={"facts": facts, "wording": wording})
    sentence = decide(found).sentence
    assert said in sentence
    assert sentence.endswith(".")


def test_a_few_questions_show_no_part_to_have_moved() -> None:
    few = difference(0.02, 0.06, groups=statistics.FEWEST_SHOWN - 1)
    found = replace(compared(UP, UP), apart={"facts": few, "wording": UP})
    assert "shown for wording alone: facts +0.040, wording" in decide(found).sentence


def test_where_no_question_has_key_facts_only_wording_is_told() -> None:
    found = replace(compared(NOWHERE, NOWHERE), apart={"wording": UP})
    assert ". Wording rose: wording +0.040" in decide(found).sentence


def in_parts(number: int, facts: dict[str, float | None], wording: dict[str, float]) -> Measured:
    """A question asked in ways whose score is the mean of both parts."""
    ways = {}
    for name, worth in wording.items():
        found = {"facts": facts[name], "closeness": worth}
        terms = {key: {"value": value} for key, value in found.items() if value is not None}
        score = float(np.mean([term["value"] for term in terms.values()]))
        ways[name] = Tried(score, terms, "", "", f"scores {score}", [], 1, 0, 0.1)
    policy = ways.pop("policy")
    return Measured(f"q{number}", "why?", f"meaning {number}", "c", "", ways, policy)


def test_facts_and_wording_stand_beside_the_score() -> None:
    """Wording counts all questions, facts those that have any."""
    rows = []
    for number in range(40):
        facts: dict[str, float | None] = {UNCHANGED: 0.2, "a": 0.6, "policy": 0.2}
        facts = facts if number % 2 == 0 else dict.fromkeys(facts)
        wording = {UNCHANGED: 0.5, "a": 0.3, "policy": 0.8 + 0.01 * (number % 3)}
        rows.append(in_parts(number, facts, wording))
    found = compare(rows, rows, last)
    worth = {way.name: (way.facts, way.wording) for way in (*found.ways, *found.operators)}
    assert worth[UNCHANGED] == pytest.approx((0.2, 0.5))
    assert worth["a"] == pytest.approx((0.6, 0.3))
    assert worth["policy"] == pytest.approx((0.2, 0.81), abs=0.01)
    assert found.apart["facts"].mean == 0
    assert found.apart["facts"].groups == 20
    assert found.apart["wording"].above_0
    text = as_text(found, decide(found))
    assert "score  facts  wording  " in " ".join(text.split("\n"))
    assert "shown for wording alone" in text


def test_an_objective_without_facts_and_wording_is_told_as_a_whole() -> None:
    found = comparison()
    assert found.apart == {}
    assert all(way.facts is None and way.wording is None for way in found.ways)
    text = as_text(found, decide(found))
    assert "facts" not in text
    assert "wording" not in text
