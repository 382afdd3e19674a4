"""Files of before: a run, its cache, its checkpoints and its evaluation, made by commit 3d90cd9.

They were made on the questions beside them, with 48 steps of four environments, and must stay
readable: they are what users have on their disks. Answers are scored otherwise since; what was
asked and answered is as it was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evaluate_query_mutator
import train_query_mutator
from query_mutator import cli
from query_mutator.evaluation.trained_policy import load_policy
from query_mutator.objectives.version import SCORING
from query_mutator.servers.simulated import SimulatedServer, answer_from_questions
from tests.conftest import weights

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def old_server() -> Iterator[SimulatedServer]:
    answer = answer_from_questions(GOLDEN / "questions.jsonl")
    with SimulatedServer(slots=8, answer=answer) as running:
        yield running


@pytest.fixture
def old_run(tmp_path: Path, old_server: SimulatedServer) -> Path:
    """A copy of the run, as if it had been made here."""
    copied = shutil.copytree(GOLDEN, tmp_path / "golden")
    for name in ("config.json", "evaluation/evaluation.json"):
        file = copied / "run" / name
        text = file.read_text().replace("GOLDEN/", f"{copied}/")
        file.write_text(text.replace("http://127.0.0.1:1", old_server.url))
    return copied / "run"


SCORED = {"previous_score", "score", "reward", "episode_return", "terms"}
"""What of a line hangs on the score, which has been another since the files were made."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def by_question(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Questions are measured as they come; the first line says under which settings."""
    return {record["sha256"]: record for record in records[1:]}


def without_scores(found: dict[str, Any]) -> dict[str, Any]:
    """What was asked and answered, and what it cost in calls."""
    return {key: found[key] for key in found.keys() - SCORED - {"seconds"}}


def contents(run: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and "rescored" not in path.parts
    }


def first_steps(lines: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """What each operator made of a question as it was asked, and the answers before and after."""
    return {
        (line["question_id"], line["operator"]): (
            line["previous_answer"],
            line["rewritten_query"],
            line["answer"],
        )
        for line in lines
        if line["query"] == line["original_query"]
    }


def test_a_run_of_before_goes_on_from_its_checkpoint(
    old_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = old_run / "transitions.jsonl"
    before, text = lines_of(log), log.read_text().splitlines()
    for step in (32, 48):
        (old_run / f"checkpoints/step-{step:012}.safetensors").unlink()
    flags = ["--resume", "--run-dir", str(old_run), "--no-eval", "--no-report"]
    assert train_query_mutator.main(flags) == 0

    told = "the steps until 16 were paid by score 2 or before, those to come are paid by score"
    assert told in capsys.readouterr().err
    assert log.read_text().splitlines()[:16] == text[:16]
    after = lines_of(log)
    assert len(after) == 48
    # The policy acts as it did until it has learned from what is paid otherwise.
    assert list(map(without_scores, after[:32])) == list(map(without_scores, before[:32]))
    for env in range(4):
        asked, then = (
            list(dict.fromkeys(line["question_id"] for line in found if line["env"] == env))
            for found in (after, before)
        )
        common = min(len(asked), len(then))
        assert asked[:common] == then[:common]
    made, known = first_steps(after), first_steps(before)
    for question_and_operator in made.keys() & known.keys():
        assert made[question_and_operator] == known[question_and_operator]
    assert all(tensor.isfinite().all() for tensor in weights(old_run).values())
    assert json.loads((old_run / "summary.json").read_text())["env_steps"] == 48
    config = json.loads((old_run / "config.json").read_text())
    assert config["trained_under_score"] == [2, SCORING]


def test_a_run_of_before_is_evaluated_and_says_what_it_was_trained_under(
    old_run: Path, old_server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "evaluation"
    flags = [str(old_run), "--num-questions", "6", "--output", str(made)]
    assert evaluate_query_mutator.main(flags) == 0

    note = "the policy was trained under score 2 or before; it is judged by score"
    assert note in capsys.readouterr().err
    assert note in (made / "evaluation.txt").read_text()
    before = old_run / "evaluation"
    figures, old = (json.loads((at / "evaluation.json").read_text()) for at in (made, before))
    assert figures["trained_under_score"] == [2]
    same = ("env_steps", "objective", "dataset", "target_model", "questions", "chosen")
    assert [figures[key] for key in same] == [old[key] for key in same]
    after, earlier = (by_question(lines_of(at / "records.jsonl")) for at in (made, before))
    assert after.keys() == earlier.keys()
    for sha256, record in after.items():
        known = earlier[sha256]
        assert record["ways"].keys() == known["ways"].keys()
        pairs = [(tried, known["ways"][name]) for name, tried in record["ways"].items()]
        if record["policy"]:
            pairs.append((record["policy"], known["policy"]))
        for tried, stored in pairs:
            # What was stored then does not tell whether an answer was cut.
            assert without_scores(tried) == {**without_scores(stored), "cut": False}
    assert old_server.stats.generation_calls == 0


def test_a_run_of_before_is_scored_again_without_a_call(
    old_run: Path, old_server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    before, log = contents(old_run), lines_of(old_run / "transitions.jsonl")
    assert cli.main(["rescore", str(old_run)]) == 0

    assert contents(old_run) == before
    assert old_server.stats.generation_calls == 0
    rescored = old_run / "rescored"
    for line, old in zip(lines_of(rescored / "transitions.jsonl"), log, strict=True):
        assert line.keys() == old.keys()
        assert without_scores(line) == without_scores(old)
        assert line["reward"] == pytest.approx(line["score"] - line["previous_score"])
        assert line["score"] == pytest.approx(
            sum(term["weight"] * term["value"] for term in line["terms"].values())
        )
    found = json.loads((rescored / "evaluation" / "evaluation.json").read_text())
    sentence = json.loads(before["evaluation/evaluation.json"])["verdict"]["sentence"]
    assert found["questions"] == 6
    shown = capsys.readouterr().out
    assert f"as logged  {sentence}" in shown
    assert f"rescored   {found['verdict']['sentence']}" in shown


def test_a_policy_of_before_rewrites(old_run: Path) -> None:
    with load_policy(old_run) as policy:
        decision = policy.rewrite("wat is teh capital of peru")
    assert decision.rewritten_query
