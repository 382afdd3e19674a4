"""Runs that another score has paid: how they are judged, and how they go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evaluate_query_mutator
from query_mutator.cli import main
from query_mutator.objectives.version import SCORING
from query_mutator.reports.html import write_report
from query_mutator.runs.checkpoints import Checkpoint, write_checkpoint
from query_mutator.runs.directory import RunDirectory
from tests.conftest import last_checkpoint
from tests.test_rescore import FEW, SCORES, lines, set_history


def test_a_policy_trained_under_another_score_says_so_when_it_is_evaluated(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = f"score 2 or before, then score {SCORING}"
    for scores, words in ((None, "score 2 or before"), ([2, SCORING], both)):
        set_history(run, scores)
        capsys.readouterr()
        assert evaluate_query_mutator.main([str(run), *FEW]) == 0
        note = f"the policy was trained under {words}; it is judged by score {SCORING}: train anew"
        assert note in capsys.readouterr().err
        assert note in (run / "evaluation" / "evaluation.txt").read_text()
        figures = json.loads((run / "evaluation" / "evaluation.json").read_text())
        assert figures["trained_under_score"] == (scores or [2])
        assert figures["score"] == SCORING
        page = write_report([run], run / "report.html").read_text()
        assert page.count(f"trained under {words}; it is judged by") == 2

    set_history(run, [SCORING])
    capsys.readouterr()
    assert evaluate_query_mutator.main([str(run), *FEW]) == 0
    assert "trained under" not in capsys.readouterr().err
    assert "trained under" not in (run / "evaluation" / "evaluation.txt").read_text()
    assert "trained under" not in write_report([run], run / "report.html").read_text()


def as_if_paid_otherwise(run: Path) -> None:
    """Makes a run one of before: another score has paid it, and its open episodes."""
    set_history(run, None)
    path = run / "checkpoints" / "step-000000000016.safetensors"
    for later in (32, 48):
        (run / f"checkpoints/step-{later:012}.safetensors").unlink()
    checkpoint = last_checkpoint(run)
    state = json.loads(json.dumps(checkpoint.state))
    state.pop("scored_by")
    assert any(env["state"]["tried"] for env in state["envs"]), "no episode is under way"
    for env in state["envs"]:
        env["score"]["terms"] = {"other": {"value": 50.0, "why": "", "weight": 1.0}}
        env["episode_return"] = 7.0 if env["state"]["tried"] else 0.0
    write_checkpoint(path, Checkpoint(checkpoint.tensors, state))


def test_an_open_episode_is_not_paid_the_difference_of_two_scores(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = lines(run)
    as_if_paid_otherwise(run)
    capsys.readouterr()
    assert main(["train", "--resume", "--run-dir", str(run)]) == 0

    said = capsys.readouterr().err
    assert "the steps until 16 were paid by score 2 or before, those to come are paid by" in said
    assert "query-mutator rescore" in said
    found = lines(run)
    for line, wanted in zip(found, expected, strict=True):
        for name in SCORES:
            assert line.pop(name) == pytest.approx(wanted.pop(name), abs=1e-9)
        assert line == wanted
    config = json.loads((run / "config.json").read_text())
    assert config["trained_under_score"] == [2, SCORING]
    assert last_checkpoint(run).state["scored_by"] == SCORING

    capsys.readouterr()
    assert main(["train", "--resume", "--run-dir", str(run), "--num-env-steps", "64"]) == 0
    assert "paid by score" not in capsys.readouterr().err, "it was told before"


def test_a_run_that_has_nothing_left_to_do_is_none_of_another_score(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_history(run, None)
    assert main(["train", "--resume", "--run-dir", str(run)]) == 0
    assert "paid by score" not in capsys.readouterr().err
    assert RunDirectory(run).read_json("config.json")["trained_under_score"] == [2]
