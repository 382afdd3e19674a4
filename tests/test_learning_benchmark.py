"""The comparison of learners: the same steps, tasks and noise for all, and honest figures."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.learning import learners
from benchmarks.learning.__main__ import main
from benchmarks.learning.learners import LEARNERS, TaskEnv, steps_per_update
from benchmarks.learning.measured import load_measured, parted
from benchmarks.learning.report import as_text, summarised
from benchmarks.learning.tasks import Judged, Task, observe, simulated_task
from query_mutator.data import load_questions
from query_mutator.evaluation.measuring import Measured, Tried
from query_mutator.models.encoders import Encoder
from tests.conftest import FEW_QUESTIONS

LEARNING = [name for name in LEARNERS if name != "random"]


@pytest.fixture(scope="module")
def task(encoder: Encoder) -> Task:
    questions = load_questions()[::8]
    return simulated_task(0, questions, observe(questions, encoder))


@pytest.mark.parametrize("name", LEARNING)
def test_a_learner_is_measured_at_exactly_the_budgets(
    name: str, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, measured_at = Counter[str](), []

    class CountedEnv(TaskEnv):
        def step(self, action: Any) -> Any:
            taken["steps"] += 1
            return super().step(action)

    class WatchedTask(Task):
        def judged(self, actions: Any) -> Judged:
            measured_at.append(taken["steps"])
            return super().judged(actions)

    monkeypatch.setattr(learners, "TaskEnv", CountedEnv)
    budgets = [steps_per_update(), 3 * steps_per_update()]
    values = LEARNERS[name](WatchedTask(**vars(task)), 1, budgets)
    assert list(values) == measured_at == budgets
    assert taken["steps"] == budgets[-1]


@pytest.mark.parametrize("name", LEARNING)
def test_a_seed_decides_what_is_learned(name: str, task: Task) -> None:
    budgets = [steps_per_update(), 2 * steps_per_update()]
    first, again, other = (LEARNERS[name](task, seed, budgets) for seed in (1, 1, 2))
    assert first == again
    # UCB has but one choice to make, which may well be the same.
    assert first != other or name == "UCB"


@pytest.mark.parametrize("name", LEARNING)
def test_every_learner_learns(name: str, task: Task) -> None:
    budget = 8 * steps_per_update()
    assert task.share_of_gap(LEARNERS[name](task, 0, [budget])[budget].value) > 0.2


def walk(task: Task, seed: int, index: int, action: int, reset_seed: int | None) -> list[int]:
    """The contexts of one pass."""
    env = TaskEnv(task, seed, index)
    rows = []
    for _ in task.train:
        env.reset(seed=reset_seed)
        rows.append(env._row)
        env.step(action)
    return rows


def test_contexts_come_in_an_order_of_their_own_for_each_seed_and_environment(task: Task) -> None:
    first = walk(task, 1, 0, 0, None)
    assert sorted(first) == sorted(task.train)
    assert first == walk(task, 1, 0, action=2, reset_seed=5)
    assert len({tuple(walk(task, seed, index, 0, 0)) for seed in (0, 1) for index in (0, 1)}) == 4


def test_one_seed_has_no_interval(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flags = ["--seeds", "1", "--first-seed", "7", "--updates", "2", "1"]
    flags += ["--dataset", str(FEW_QUESTIONS)]
    assert main([*flags, "--output", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "seed 7;" in shown
    assert "no interval)" in shown

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (tmp_path / "out" / "learning.json").read_text()
    content = json.loads(text, parse_constant=refuse)
    assert content["budgets"] == [steps_per_update(), 2 * steps_per_update()]
    assert content["seeds"] == [7]
    assert [lead[1:] for lead in content["results"]["UCB"]["ours_ahead"]] == [[None, None]] * 2
    assert (tmp_path / "out" / "learning.png").stat().st_size > 5_000


def test_several_seeds_have_an_interval() -> None:
    ours, other = [0.5, 0.6, 0.8, 0.7, 0.6], [0.4, 0.4, 0.7, 0.5, 0.6]
    shares = {"ours": np.array(ours)[:, None], "other": np.array(other)[:, None]}
    results = summarised(shares, [64])
    [[mean, low, high]] = results["other"]["ours_ahead"]
    assert low < mean < high
    assert "seeds 3 to 7;" in as_text(results, [64], range(3, 8))
    assert f"{low:+.3f}..{high:+.3f}" in as_text(results, [64], range(3, 8))


def test_what_cannot_end_well_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("benchmarks.learning.tasks.observe", None)  # the work would fail
    assert main(["--output", str(tmp_path / "file")]) == 2
    assert "File exists" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)  # as if it were not installed
    assert main(["--output", str(tmp_path / "out")]) == 2
    assert "stable-baselines3 cannot be imported" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_learners_can_be_compared_on_the_questions_of_an_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.jsonl"
    questions = [f"what is {number} plus {number}" for number in range(40)]
    records = [_record(question, tidy=index % 2) for index, question in enumerate(questions)]
    file.write_text("".join(json.dumps(one) + "\n" for one in ({"fingerprint": "x"}, *records)))
    assert main(["--records", str(file), "--seeds", "2", "--updates", "1"]) == 0
    assert "LinUCB" in capsys.readouterr().out
    measured = load_measured(file)
    assert measured.gains.tolist() == [[0.0, -0.5 + index % 2] for index in range(40)]
    first, again, other = (parted(measured, seed) for seed in (1, 1, 2))
    assert first.heldout.tolist() == again.heldout.tolist() != other.heldout.tolist()
    assert sorted([*first.train, *first.heldout]) == list(range(40))
    assert len(first.heldout) == 13


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        ("", "has 0 measured questions"),
        ("{}\nnot json", "is not the records.jsonl"),
        ('{}\n{"ways": 1}', "is not the records.jsonl"),
    ],
)
def test_a_file_that_holds_no_evaluation_is_refused(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.jsonl"
    if content is not None:
        file.write_text(content)
    assert main(["--records", str(file)]) == 2
    assert message in capsys.readouterr().err


def _record(question: str, *, tidy: int) -> dict[str, Any]:
    def way(score: float) -> Tried:
        return Tried(score, {}, question, question, "It is a number.", [], 1, 0, 0.1)

    ways = {"unchanged": way(0.5), "tidy": way(float(tidy))}
    return Measured(question, question, question, "sums", "0" * 64, ways).to_json()
