"""Files of before: a run, its cache, its checkpoints and its evaluation, made by commit 3d90cd9.

They were made on the questions beside them, with 48 steps of four environments, and must stay
readable: they are what users have on their disks. Nothing here makes a model call.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import evaluate_query_mutator
import train_query_mutator
from query_mutator.evaluation.trained_policy import load_policy
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


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_order(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Questions are measured as they come; the first line says under which settings."""
    return sorted(records, key=lambda record: record.get("sha256", ""))


def check_same(left: Any, right: Any, place: str = "") -> None:
    """Equal but for the last digits of what was embedded on another processor, and for times."""
    assert type(left) is type(right), place
    if isinstance(left, dict):
        assert left.keys() == right.keys(), place
        # The reason for a drift of nothing is worded otherwise, as drift is told otherwise.
        for key in left.keys() - {"seconds"} - ({"why"} if place.endswith(".drift") else set()):
            check_same(left[key], right[key], f"{place}.{key}")
    elif isinstance(left, list):
        assert len(left) == len(right), place
        for number, pair in enumerate(zip(left, right, strict=True)):
            check_same(*pair, f"{place}[{number}]")
    elif isinstance(left, float):
        assert left == pytest.approx(right, abs=1e-4), place
    else:
        assert left == right, place


def test_a_run_of_before_goes_on_from_its_checkpoint_to_the_same_end(
    old_run: Path, old_server: SimulatedServer
) -> None:
    transitions, policy = lines_of(old_run / "transitions.jsonl"), weights(old_run)
    for step in (32, 48):
        (old_run / f"checkpoints/step-{step:012}.safetensors").unlink()
    flags = ["--resume", "--run-dir", str(old_run), "--no-eval", "--no-report"]
    assert train_query_mutator.main(flags) == 0

    check_same(lines_of(old_run / "transitions.jsonl"), transitions)
    for name, tensor in weights(old_run).items():
        assert torch.allclose(tensor, policy[name], atol=1e-4), name
    summary = json.loads((old_run / "summary.json").read_text())
    assert summary["env_steps"] == 48
    assert old_server.stats.generation_calls == 0


def test_a_run_of_before_is_evaluated_as_before(
    old_run: Path, old_server: SimulatedServer, tmp_path: Path
) -> None:
    made = tmp_path / "evaluation"
    flags = [str(old_run), "--num-questions", "6", "--output", str(made)]
    assert evaluate_query_mutator.main(flags) == 0

    before = old_run / "evaluation"
    check_same(*(json.loads((at / "evaluation.json").read_text()) for at in (made, before)))
    after, earlier = (in_order(lines_of(at / "records.jsonl")) for at in (made, before))
    check_same(after, earlier)
    assert old_server.stats.generation_calls == 0


def test_a_policy_of_before_rewrites(old_run: Path) -> None:
    with load_policy(old_run) as policy:
        decision = policy.rewrite("wat is teh capital of peru")
    assert decision.rewritten_query
