"""Keeping the better answer in whole runs: learned, resumed, evaluated and shown."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evaluate_query_mutator
import mutate_query
import train_query_mutator
from query_mutator.evaluation.trained_policy import load_policy
from query_mutator.runs.checkpoints import Checkpoint
from query_mutator.runs.metrics import metric_of
from query_mutator.runs.transitions import read_transitions
from query_mutator.servers.simulated import SimulatedServer
from tests.conftest import FEW_QUESTIONS, last_checkpoint
from tests.keeping import OPERATOR, determined, of_any_length
from tests.test_training import change_checkpoint, scalars, train, transitions


@pytest.fixture
def lengths() -> Iterator[SimulatedServer]:
    with SimulatedServer(answer=of_any_length) as running:
        yield running


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
    others = [step for step in dropped if step.dropped and step.dropped.answer != step.answer]
    assert summary["dropped_rewrites"] == len(others) > 0
    shares = scalars(run)["RL/kept_share"]
    assert all(0 <= share <= 1 for _, share in shares)
    assert metric_of("RL/kept_share") is not None
    late = asked[-len(asked) // 2 :]
    gains = [(step.tried_score or 0.0) - step.previous_score for step in late]
    assert np.mean([step.reward for step in late]) > np.mean(gains)
    lost = [gain for gain, step in zip(gains, late, strict=True) if not step.dropped and gain < 0]
    assert len(lost) < 0.2 * len(late)
    assert last_checkpoint(run).state["keeper"]["pairs"] > len(asked) / 2


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
