"""Keeping the better answer: what decides, what is undone, and what is learned."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batching.generation.tokenizers import ByteTokenizer
from batching.streaming.trajectories import MutationEnvStream
from query_mutator.data import Question, load_questions
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.episodes import opening_state
from query_mutator.environment.keeping import LOOKS_AT, Keeper, keeper_of, kept_flow
from query_mutator.environment.transition import Transition
from query_mutator.models.encoders import Encoder
from query_mutator.models.session import Models
from query_mutator.operators import Operator
from query_mutator.servers.simulated import SimulatedServer
from query_mutator.tuning.run_pairs import gain_pairs
from tests.conftest import FEW_QUESTIONS
from tests.keeping import OPERATOR, brevity, brevity_of, determined, of_any_length

MakeModels = Callable[..., Models]
MakeEnv = Callable[..., QueryMutationEnv]


def off_topic_unless_asked_so(model: str, system: str, prompt: str) -> str:
    """To a question in a template its own words, to any other the weather."""
    return prompt if "Question:" in prompt else "Rain is likely in the hills tonight."


@pytest.fixture
def lengths() -> Iterator[SimulatedServer]:
    with SimulatedServer(answer=of_any_length) as running:
        yield running


@pytest.fixture
def weather() -> Iterator[SimulatedServer]:
    with SimulatedServer(answer=off_topic_unless_asked_so) as running:
        yield running


def rewritten(env: QueryMutationEnv, action: int = OPERATOR) -> Transition:
    return env.advance(action).info


def test_before_anything_is_seen_the_answer_nearer_to_the_question_is_kept(
    weather: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(weather), keeper=Keeper())
    env.reset(seed=1)
    step = rewritten(env)
    assert step.dropped is None
    assert step.answer.startswith("Question:")

    nearer, farther = "The capital of Peru is Lima.", "Rain is likely in the hills tonight."
    for first, second, kept in ((farther, nearer, True), (nearer, farther, False)):
        before = opening_state("Capital of Peru?", first, cut=False, max_rewrites=1)
        after = dataclasses.replace(before, answer=second, prompt="other", tried=(0,), steps_left=0)
        runner = models_for(weather).runner({}, max_workers=1)
        choice = runner.run([kept_flow(Keeper(), before, after)])[0]
        assert choice.kept == kept
        assert choice.state.answer == nearer


def test_what_is_not_kept_is_undone_and_told(
    lengths: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(lengths), max_rewrites=3, objective=brevity, keeper=determined(-1.0))
    _, opening = env.reset(seed=4)
    calls = lengths.stats.generation_calls
    step = rewritten(env)
    assert lengths.stats.generation_calls == calls + 1, "what is not kept was not asked for"
    assert step.dropped is not None
    assert step.dropped.answer == of_any_length("", "", step.rewritten_query).strip()
    assert step.dropped.score == step.tried_score == brevity_of(step.dropped.answer)
    assert (step.answer, step.score, step.reward) == (opening["answer"], opening["score"], 0.0)
    assert step.rewritten_query != step.query == opening["query"]
    assert not env.action_masks()[OPERATOR], "it counts as tried"

    env.keeper = determined(1.0)
    following = rewritten(env, OPERATOR + 1)
    assert following.query == opening["query"], "the next rewrite builds on one that was undone"
    assert following.dropped is None
    assert following.previous_score == opening["score"]
    assert following.reward == pytest.approx(brevity_of(following.answer) - opening["score"])
    stopped = env.advance(0)
    assert stopped.episode_return == pytest.approx(following.reward)
    assert stopped.info.score == brevity_of(following.answer)


def test_a_step_that_was_not_kept_is_read_from_its_line(
    lengths: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(lengths), objective=brevity, keeper=determined(-1.0))
    env.reset(seed=4)
    step = rewritten(env)
    line = json.loads(json.dumps(step.to_json()))
    assert line["dropped"]["score"] == step.tried_score
    read = Transition.from_json(line)
    assert read.dropped == step.dropped
    assert read.tried_score == step.tried_score
    for damaged in ({"answer": "x"}, {"answer": 1, "score": 1.0}, {"answer": "", "score": 1e300}):
        with pytest.raises(ValueError, match=r"score|answer"):
            Transition.from_json(line | {"dropped": damaged})
    env.keeper = None
    env.reset(seed=4)
    assert "dropped" not in rewritten(env).to_json()


def test_equal_answers_leave_the_question_as_it_was_and_teach_nothing(
    models_for: MakeModels, make_env: MakeEnv
) -> None:
    with SimulatedServer(answer=lambda model, system, prompt: "The same.") as server:
        env = make_env(models_for(server), keeper=determined(1.0))
        _, opening = env.reset(seed=1)
        step = rewritten(env)
    assert step.differences == ()
    assert step.dropped is not None
    assert (step.reward, step.answer) == (0.0, "The same.")
    assert env._started().prompt == opening["query"]


def test_nothing_of_the_reference_is_looked_at(
    server: SimulatedServer,
    models_for: MakeModels,
    make_env: MakeEnv,
    train_questions: list[Question],
) -> None:
    other = [
        dataclasses.replace(q, reference="Something else.", key_facts=(("else",),), category="x")
        for q in train_questions
    ]
    models = models_for(server)
    envs = [
        make_env(models, questions=asked, keeper=Keeper()) for asked in (train_questions, other)
    ]
    found = []
    for seed in range(12):
        for env in envs:
            env.reset(seed=seed)
        one, another = (rewritten(env) for env in envs)
        assert one.differences == another.differences
        assert one.answer == another.answer
        found.append((one.tried_score, another.tried_score, one.dropped is None))
    assert any(first != second for first, second, _ in found)
    assert len({kept for *_, kept in found}) == 2, "the same was decided every time"


def test_it_learns_that_the_shorter_answer_is_better_where_that_is_what_counts(
    lengths: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    keeper = Keeper()
    env = make_env(models_for(lengths), objective=brevity, keeper=keeper)
    steps: list[Transition] = []
    for rollout in range(14):
        seen = []
        for _ in range(8):
            env.reset()
            step = rewritten(env, OPERATOR + rollout % 4)
            seen.append(step)
        keeper.learn(
            (step.differences, step.tried_score - step.previous_score)
            for step in seen
            if step.differences and step.tried_score is not None
        )
        steps += seen
    late = [step for step in steps[-56:] if step.differences]
    gains = [(step.tried_score or 0.0) - step.previous_score for step in late]
    clear = [
        (gain > 0) == (step.dropped is None)
        for gain, step in zip(gains, late, strict=True)
        if abs(gain) > 0.1
    ]
    assert len(clear) > 20
    assert np.mean(clear) > 0.9
    best = np.mean(np.maximum(gains, 0))
    assert np.mean([step.reward for step in late]) > 0.9 * best > np.mean(gains)
    assert keeper.pairs == sum(bool(step.differences) for step in steps)


def test_what_is_learned_does_not_depend_on_where_it_was_saved() -> None:
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(60, len(LOOKS_AT)))
    pairs = [(tuple(map(float, row)), float(row[2] - 0.5 * row[5])) for row in rows]
    whole, parts = Keeper(), Keeper()
    whole.learn(pairs[:30])
    whole.learn(pairs[30:])
    parts.learn(pairs[:30])
    parts = keeper_of(json.loads(json.dumps(parts.plain())))
    parts.learn(pairs[30:])
    assert parts.plain() == whole.plain()
    assert whole.coefficients[2] > 0.7
    assert whole.coefficients[5] < -0.3
    before = whole.plain()
    whole.learn([])
    assert whole.plain() == before


@pytest.mark.parametrize(
    "change",
    [
        {"looks_at": ["something"]},
        {"moments": [1.0]},
        {"gram": []},
        {"pairs": -1},
        {"coefficients": ["a"] * len(LOOKS_AT)},
        {"more": 1},
    ],
)
def test_what_no_keeper_has_saved_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        keeper_of(Keeper().plain() | change)


def test_a_rewriter_learns_from_the_gain_of_a_rewrite_whether_it_was_kept_or_not(
    lengths: SimulatedServer,
    models_for: MakeModels,
    make_env: MakeEnv,
    operators: list[Operator],
    encoder: Encoder,
    tmp_path: Path,
) -> None:
    tidy = OPERATOR + [operator.name for operator in operators].index("tidy")
    models, asked = models_for(lengths), load_questions(FEW_QUESTIONS)
    found = []
    for name, keeper in (("kept", None), ("not", determined(-1.0))):
        env = make_env(models, questions=asked, objective=brevity, keeper=keeper)
        run = tmp_path / name
        run.mkdir()
        with (run / "transitions.jsonl").open("w") as log:
            for _ in asked:
                env.reset()
                log.write(json.dumps(rewritten(env, tidy).to_json()) + "\n")
        found.append(gain_pairs(run, encoder))
    assert found[0] == found[1]
    assert found[0]


def test_a_sample_does_not_build_on_a_rewrite_that_was_undone(
    lengths: SimulatedServer, models_for: MakeModels, make_env: MakeEnv, operators: list[Operator]
) -> None:
    env = make_env(models_for(lengths), max_rewrites=2, objective=brevity, keeper=determined(-1.0))
    actions = iter([1, 2] * 4)
    stream = MutationEnvStream(env, lambda *_: next(actions), ByteTokenizer(), episodes=4)
    samples = list(stream)
    names = [operator.name for operator in operators[:2]]
    assert [sample.meta["operators"] for sample in samples] == [[names[0]], [names[1]]] * 4
    rewards = [sample.reward or 0.0 for sample in samples]
    assert min(rewards) < 0 < max(rewards)
