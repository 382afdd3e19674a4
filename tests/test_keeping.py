"""Keeping the better answer: what decides, what is undone, what is learned, saved and shown."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evaluate_query_mutator
import mutate_query
import train_query_mutator
from batching.generation.tokenizers import ByteTokenizer
from batching.streaming.trajectories import MutationEnvStream
from query_mutator.data import Question, load_questions
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.episodes import opening_state
from query_mutator.environment.keeping import LOOKS_AT, Keeper, keeper_of, kept_flow
from query_mutator.environment.transition import Transition
from query_mutator.evaluation.trained_policy import load_policy
from query_mutator.models.encoders import Encoder
from query_mutator.models.session import Models
from query_mutator.objectives import Batch, Score, Term
from query_mutator.operators import Operator
from query_mutator.runs.checkpoints import Checkpoint
from query_mutator.runs.metrics import metric_of
from query_mutator.runs.transitions import read_transitions
from query_mutator.servers.simulated import SimulatedServer
from query_mutator.servers.simulated.answers import stable_hash
from query_mutator.tuning.run_pairs import gain_pairs
from tests.conftest import FEW_QUESTIONS, last_checkpoint
from tests.test_training import change_checkpoint, scalars, train, transitions

MakeModels = Callable[..., Models]
MakeEnv = Callable[..., QueryMutationEnv]
LONGEST = 40
CONSTANT = LOOKS_AT.index("rewritten")
OPERATOR = 1
"""The first operator, as an action."""


def of_any_length(model: str, system: str, prompt: str) -> str:
    """An answer whose length nothing but the prompt's own letters decides."""
    return "word " * (1 + stable_hash(prompt) % LONGEST)


def off_topic_unless_asked_so(model: str, system: str, prompt: str) -> str:
    """To a question in a template its own words, to any other the weather."""
    return prompt if "Question:" in prompt else "Rain is likely in the hills tonight."


def brevity(batch: Batch) -> list[Score]:
    return [Score({"brevity": Term(1 - len(text.split()) / LONGEST)}) for text in batch.answers]


@pytest.fixture
def lengths() -> Iterator[SimulatedServer]:
    with SimulatedServer(answer=of_any_length) as running:
        yield running


@pytest.fixture
def weather() -> Iterator[SimulatedServer]:
    with SimulatedServer(answer=off_topic_unless_asked_so) as running:
        yield running


def determined(expected_gain: float) -> Keeper:
    """One that expects the same of every new answer."""
    keeper = Keeper()
    keeper.coefficients = np.zeros(len(LOOKS_AT))
    keeper.coefficients[CONSTANT] = expected_gain
    return keeper


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


def brevity_of(answer: str) -> float:
    return 1 - len(answer.split()) / LONGEST


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


OBJECTIVE = """
from query_mutator.objectives import Score, Term

def brevity(batch):
    return [Score({"brevity": Term(1 - len(answer.split()) / 40)}) for answer in batch.answers]
"""


@pytest.fixture
def paid_for_brevity(lengths: SimulatedServer, tmp_path: Path) -> Path:
    """A run on a task where nothing but the length of an answer counts."""
    file = tmp_path / "brevity.py"
    file.write_text(OBJECTIVE)
    run = tmp_path / "run"
    flags = ["--objective", f"{file}:brevity", "--num-env-steps", "96", "--max-rewrites", "2"]
    assert (
        train(lengths, run, *flags, "--dataset", str(FEW_QUESTIONS), "--num-questions", "24") == 0
    )
    return run


def test_a_run_learns_to_keep_and_its_rewards_are_those_of_what_is_kept(
    paid_for_brevity: Path,
) -> None:
    run = paid_for_brevity
    steps = list(read_transitions(run))
    for step in steps:
        assert step.score is not None
        assert step.reward == pytest.approx(step.score - step.previous_score)
        assert step.answer == (step.previous_answer if step.dropped else step.answer)
    asked = [step for step in steps if step.operator != "stop"]
    dropped = [step for step in asked if step.dropped is not None]
    summary = json.loads((run / "summary.json").read_text())
    assert summary["dropped_rewrites"] == len(dropped) > 0
    shares = scalars(run)["RL/kept_share"]
    assert all(0 <= share <= 1 for _, share in shares)
    assert metric_of("RL/kept_share") is not None
    late = asked[-len(asked) // 2 :]
    gains = [(step.tried_score or 0.0) - step.previous_score for step in late]
    assert np.mean([step.reward for step in late]) > np.mean(gains)
    lost = [gain for gain, step in zip(gains, late, strict=True) if not step.dropped and gain < 0]
    assert len(lost) < 0.2 * len(late)
    assert last_checkpoint(run).state["keeper"]["pairs"] > len(asked) / 2


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


def test_a_run_that_lost_its_keeper_is_not_gone_on_with_as_if_nothing_was_learned(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run) == 0
    kept = last_checkpoint(run).state["keeper"]
    change_checkpoint(run, lambda content: content.state.pop("keeper"))
    capsys.readouterr()
    resume = ["--resume", "--run-dir", str(run), "--server", server.url, "--num-env-steps", "64"]
    assert train_query_mutator.main(resume) == 2
    assert "there is no 'keeper'" in capsys.readouterr().err
    assert mutate_query.main(["--run", str(run), "anything?"]) == 2
    change_checkpoint(run, lambda content: content.state.update(keeper=kept | {"gram": [[1.0]]}))
    assert train_query_mutator.main(resume) == 2
    said = capsys.readouterr().err
    assert "the numbers for keeping an answer are not as many" in said


def test_a_resumed_run_decides_by_what_was_learned_before(
    lengths: SimulatedServer, tmp_path: Path
) -> None:
    flags = ["--dataset", str(FEW_QUESTIONS), "--num-questions", "24", "--max-rewrites", "2"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(lengths, whole, *flags, "--num-env-steps", "96") == 0
    assert train(lengths, parts, *flags, "--num-env-steps", "48") == 0
    assert last_checkpoint(parts).state["keeper"]["pairs"] > 0
    other = shutil.copytree(parts, tmp_path / "other")
    resume = ["--resume", "--server", lengths.url, "--num-env-steps", "96", "--run-dir"]
    assert train_query_mutator.main([*resume, str(parts)]) == 0
    assert transitions(parts) == transitions(whole)
    assert last_checkpoint(parts).state["keeper"] == last_checkpoint(whole).state["keeper"]

    def forget(content: Checkpoint) -> None:
        content.state["keeper"] = determined(-1.0).plain()

    change_checkpoint(other, forget)
    assert train_query_mutator.main([*resume, str(other)]) == 0
    assert transitions(other) != transitions(whole)


def test_the_last_answer_is_kept_where_that_is_asked_for_and_stays_so(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--keep", "last", "--max-rewrites", "2") == 0
    assert not any(step.dropped for step in read_transitions(run))
    assert "keeper" not in last_checkpoint(run).state
    assert "RL/kept_share" not in scalars(run)
    capsys.readouterr()
    resume = ["--resume", "--run-dir", str(run), "--server", server.url, "--num-env-steps", "64"]
    assert train_query_mutator.main([*resume, "--keep", "better"]) == 2
    assert "--keep 'better': the run has 'last'" in capsys.readouterr().err
    assert train_query_mutator.main(["--keep", "first", "--run-dir", str(tmp_path / "no")]) == 2
    assert "--keep must be better or last, not 'first'" in capsys.readouterr().err

    config = json.loads((run / "config.json").read_text())
    del config["settings"]["keep"]  # as runs of before it could be chosen have it
    (run / "config.json").write_text(json.dumps(config))
    assert train_query_mutator.main([*resume, "--keep", "better"]) == 2
    assert "the run has 'last'" in capsys.readouterr().err
    assert train_query_mutator.main(resume) == 0
    assert not any(step.dropped for step in read_transitions(run))
    assert evaluate_query_mutator.main([str(run), *FEW]) == 0
    assert "last answer always kept" not in capsys.readouterr().out


FEW = ["--num-questions", "12", "--num-training-questions", "4", "--twins", "0"]


def always_rewrites(run: Path, expected_gain: float) -> None:
    """Has a run's policy choose its first operator, and expect so much of every new answer."""

    def change(content: Checkpoint) -> None:
        content.tensors["policy.actor.0.weight"].zero_()
        content.tensors["policy.actor.0.bias"].zero_()[OPERATOR] = 50.0
        content.state["keeper"] = determined(expected_gain).plain()

    change_checkpoint(run, change)


def ways_of(run: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    figures = json.loads((run / "evaluation" / "evaluation.json").read_text())
    return {way["name"]: way for way in figures["ways"]}, figures


@pytest.fixture
def one_rewrite(server: SimulatedServer, tmp_path: Path) -> Path:
    run = tmp_path / "run"
    assert train(server, run, "--max-rewrites", "1") == 0
    return run


def test_an_evaluation_sets_what_is_kept_beside_the_last_answer_at_equal_calls(
    one_rewrite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    always_rewrites(one_rewrite, -1.0)
    assert evaluate_query_mutator.main([str(one_rewrite), *FEW]) == 0
    ways, figures = ways_of(one_rewrite)
    operator = figures["operators"][0]
    policy, last = ways["policy"], ways["policy, last answer always kept"]
    assert policy["score"] == ways["unchanged"]["score"]
    assert last["score"] == operator["score"] != policy["score"]
    assert policy["target_calls"] == last["target_calls"] == 2
    lead = last["policy_ahead"]
    assert lead["mean"] == pytest.approx(policy["score"] - last["score"])
    assert lead["low"] <= lead["mean"] <= lead["high"]
    assert figures["kept_share"] == 0
    shown = capsys.readouterr().out
    assert "policy, last answer always kept" in shown
    assert "it kept one to a rewrite in 0%" in shown

    # Records of another keeper are not used.
    always_rewrites(one_rewrite, 1.0)
    assert evaluate_query_mutator.main([str(one_rewrite), *FEW]) == 0
    ways, figures = ways_of(one_rewrite)
    assert ways["policy"]["score"] == ways["policy, last answer always kept"]["score"]
    assert ways["policy"]["score"] == operator["score"]
    assert figures["kept_share"] == 1


def test_several_runs_together_tell_what_keeping_adds(
    one_rewrite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    always_rewrites(one_rewrite, -1.0)
    other = shutil.copytree(one_rewrite, tmp_path / "other")
    always_rewrites(other, 1.0)
    capsys.readouterr()
    assert evaluate_query_mutator.main([str(one_rewrite), str(other), *FEW]) == 0
    together = capsys.readouterr().out.split("2 policies on")[1]
    row = next(line for line in together.splitlines() if "last answer always kept" in line)
    assert row.rstrip().endswith("+0.000")


def test_a_question_is_shown_with_the_answer_that_was_not_kept(
    one_rewrite: Path, server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "wat is teh capital of peru"
    always_rewrites(one_rewrite, -1.0)
    capsys.readouterr()
    assert mutate_query.main(["--run", str(one_rewrite), question]) == 0
    shown = capsys.readouterr().out
    for part in ("tried:      qa: Question: ", "not kept:   ", "kept:       the answer before"):
        assert part in shown
    assert "after:" not in shown
    with load_policy(one_rewrite) as policy:
        left = policy.rewrite(question)
        always_rewrites(one_rewrite, 1.0)
    assert left.rewritten_query == question
    assert left.answer_after == left.answer_before
    assert left.operators == [left.not_kept[0].operator] == ["qa"]

    assert mutate_query.main(["--run", str(one_rewrite), question]) == 0
    shown = capsys.readouterr().out
    assert "not kept:" not in shown
    with load_policy(one_rewrite) as policy:
        kept = policy.rewrite(question)
    assert kept.rewritten_query == left.not_kept[0].query
    assert kept.answer_after == left.not_kept[0].answer
    assert kept.not_kept == []
    assert f"after:      {kept.answer_after}" in shown
