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
from benchmarks.learning.report import as_text, summarised
from benchmarks.learning.tasks import Task, observe, simulated_task
from data import load_questions
from model_client.encoders import Encoder

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
        def value(self, actions: Any) -> float:
            measured_at.append(taken["steps"])
            return super().value(actions)

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
    assert task.share_of_gap(LEARNERS[name](task, 0, [budget])[budget]) > 0.2


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
    shares = {"ours": np.array([[0.5], [0.6], [0.8]]), "other": np.array([[0.4], [0.4], [0.7]])}
    results = summarised(shares, [64])
    [[mean, low, high]] = results["other"]["ours_ahead"]
    assert low < mean < high
    assert "seeds 3 to 5;" in as_text(results, [64], range(3, 6))
    assert f"{low:+.3f}..{high:+.3f}" in as_text(results, [64], range(3, 6))


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
