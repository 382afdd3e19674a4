"""Learners on a table of operators: what each is, at how many rewards, and what is told of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.learning import learners
from benchmarks.learning.__main__ import main
from benchmarks.learning.gain_learners import LEARNERS
from benchmarks.learning.gain_report import as_text, summarised
from benchmarks.learning.learners import TaskEnv, runs_needed, steps_per_update
from benchmarks.learning.simple import fitted
from benchmarks.learning.table import load_table_task, task_of_no_use
from benchmarks.learning.tasks import Judged, Task
from query_mutator.runs.settings import Settings
from tests.operator_tables import row, write_table

ENVS = Settings().num_processes
OPERATORS = 4
WITH_UPDATES = ("ours", "PPO, all actions", "SB3 PPO")


def task_of(questions: int = 600, *, noise: float = 0.2, helps: float = 0.2) -> Task:
    """A rewrite helps where the first number of an observation is above 0, and harms elsewhere;
    the last operator is a little better than the others."""
    generator = np.random.default_rng(0)
    observations = generator.uniform(-1, 1, (questions, 5)).astype(np.float32)
    worth = np.zeros((questions, OPERATORS + 1))
    worth[:, 1:] = helps * observations[:, :1]
    worth[:, OPERATORS] += helps / 4
    split = np.arange(questions) < questions * 2 // 3
    train, heldout = np.flatnonzero(split), np.flatnonzero(~split)
    return Task(observations, worth, noise, train, heldout, in_turns=True)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_learns_from_exactly_as_many_rewards_as_are_said(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Counter[str]()

    class CountedEnv(TaskEnv):
        def step(self, action: Any) -> Any:
            taken["steps"] += 1
            return super().step(action)

    monkeypatch.setattr(learners, "TaskEnv", CountedEnv)
    budgets = [steps_per_update() // 2, steps_per_update(), 5 * steps_per_update() // 2]
    values = LEARNERS[name](task_of(120), 1, budgets)
    assert list(values) == budgets
    if name in WITH_UPDATES:
        assert taken["steps"] == sum(max(of_one_run) for of_one_run in runs_needed(budgets))
    else:
        assert taken["steps"] == (0 if "hindsight" in name else max(budgets))


def test_only_budgets_of_whole_updates_share_a_run_of_ppo() -> None:
    update = steps_per_update()
    budgets = [2 * update + ENVS, 5 * update, 10 * update]
    assert runs_needed(budgets) == [[2 * update + ENVS], [5 * update, 10 * update]]


def test_no_question_comes_twice_before_all_have_come_once() -> None:
    task = task_of(240)
    envs = [TaskEnv(task, 3, index, ENVS) for index in range(ENVS)]
    seen = []
    for _ in range(2 * len(task.train) // ENVS):
        for env in envs:
            env.reset()
            seen.append(env._row)
    first, second = seen[: len(task.train)], seen[len(task.train) :]
    assert sorted(first) == sorted(second) == sorted(task.train)
    assert first != second


@pytest.mark.parametrize("name", ["LinUCB", "regression"])
def test_what_looks_at_the_question_learns_where_a_rewrite_helps(name: str) -> None:
    task = task_of()
    found = LEARNERS[name](task, 0, [640])[640]
    missed = float((task.best_value - found.value) / task.best_value)
    assert missed < 0.2, "most of what can be gained is gained"
    assert 0.2 < found.left_alone < 0.6


def test_the_regression_shrinks_what_the_rewards_do_not_tell() -> None:
    generator = np.random.default_rng(1)
    rows = generator.uniform(-1, 1, (160, 20)).astype(np.float32)
    rows[:, 7] = 0.5  # what never varies tells nothing, and does no harm
    actions = generator.integers(1, OPERATORS + 1, 160)
    noise = generator.normal(0, 0.3, 160)
    of_noise = fitted(rows, actions, noise - 0.2, OPERATORS)
    assert np.abs(of_noise.slope).max() < 0.02
    assert np.ptp(of_noise.means) < 0.05
    assert of_noise.means == pytest.approx(-0.2, abs=0.1)
    assert (of_noise.greedy(rows) == 0).all()

    better = np.where(actions == 2, 0.5, 0.0)
    of_one = fitted(rows, actions, noise + better, OPERATORS)
    assert of_one.means.argmax() + 1 == 2
    assert np.ptp(of_one.means) > 0.3
    of_slope = fitted(rows, actions, noise + rows[:, 3], OPERATORS)
    assert np.abs(of_slope.slope).argmax() == 3
    assert of_slope.slope[3] / of_slope.scale[3] > 0.7


def test_the_best_single_operator_is_chosen_on_what_was_seen_or_on_what_was_not() -> None:
    worth = np.zeros((60, 3))
    worth[:40, 1], worth[40:, 1] = 0.3, -0.1
    worth[:40, 2], worth[40:, 2] = -0.1, 0.2
    task = Task(np.zeros((60, 2), np.float32), worth, 0.0, np.arange(40), np.arange(40, 60))
    seen, hindsight = (
        LEARNERS[f"best single {how}"](task, 0, [32])[32]
        for how in ("of what was seen", "in hindsight")
    )
    assert seen.value == pytest.approx(-0.1)
    assert hindsight.value == pytest.approx(0.2)


def test_where_all_operators_harm_the_best_single_choice_is_none(tmp_path: Path) -> None:
    table = write_table(tmp_path / "table.jsonl", _rows())
    task = task_of_no_use("harm", table)
    assert task.num_actions == 3
    assert len(task.train) == 40
    for name in ("best single in hindsight", "best single of what was seen", "regression"):
        assert LEARNERS[name](task, 0, [320])[320] == Judged(0.0, 1.0)
    none = task_of_no_use("none", table)
    assert none.judged(np.ones(len(none.heldout), int)) == Judged(0.0, 0.0)
    assert none.noise > 0


def test_a_table_is_learned_on_by_its_splits(tmp_path: Path) -> None:
    task = load_table_task(write_table(tmp_path / "table.jsonl", _rows()))
    assert task.worth[:3].tolist() == [
        pytest.approx([0.0, 0.2, -0.1]),
        pytest.approx([0.0, 0.0, -0.1]),
        pytest.approx([0.0, 0.2, -0.1]),
    ]
    assert task.train.tolist() == list(range(40))
    assert task.heldout.tolist() == list(range(40, 60))
    assert task.observations[1].tolist() == [1.0, 0.25]
    assert task.noise == 0


@pytest.mark.parametrize(
    ("flags", "told"),
    [([], "gain on 20 unseen questions"), (["--task", "harm"], "share of the questions left")],
)
def test_the_comparison_is_printed_kept_and_drawn(
    flags: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = write_table(tmp_path / "table.jsonl", _rows()), tmp_path / "out"
    budgets = [str(ENVS), str(4 * ENVS)]
    argv = ["--table", str(table), "--seeds", "2", "--budgets", *budgets[::-1], *flags]
    assert main([*argv, "--output", str(out)]) == 0
    shown = capsys.readouterr()
    assert told in shown.out
    assert "took" in shown.err
    found = json.loads((out / "learning.json").read_text())
    assert found["budgets"] == [int(budget) for budget in budgets]
    assert found["seeds"] == [0, 1]
    assert list(found["results"]) == list(LEARNERS)
    for name, result in found["results"].items():
        assert name in shown.out
        assert np.shape(result["seeds"]) == (2, 2)
        assert result["gain"] == pytest.approx(np.mean(result["seeds"], axis=0).tolist())
    assert (out / "learning.png").stat().st_size > 5_000


def test_seeds_below_0_and_leads_are_counted() -> None:
    def of(values: list[float]) -> list[list[Judged]]:
        return [[Judged(value, 0.5 + value)] for value in values]

    results = summarised(
        {"ours": of([0.1, -0.1, 0.2, 0.2, 0.1]), "other": of([0.0, -0.1, -0.2, -0.1, -0.2])}
    )
    ours, other = results["ours"], results["other"]
    assert ours["gain"] == [pytest.approx(0.1)]
    assert ours["error"] == [pytest.approx(np.std([0.1, -0.1, 0.2, 0.2, 0.1], ddof=1) / 5**0.5)]
    assert ours["below_0"] == [0.2]
    assert other["below_0"] == [0.8], "0 is not below 0"
    assert ours["left_alone"] == [pytest.approx(0.6)]
    assert ours["left_alone_least"] == [pytest.approx(0.4)]
    [[mean, low, high]] = other["ours_ahead"]
    assert mean == pytest.approx(0.22)
    assert low < mean < high
    text = as_text(results, [64], range(5), 300)
    assert "gain on 300 unseen questions, seeds 0 to 4" in text
    assert f"+0.220 [{low:+.3f}, {high:+.3f}]" in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--table", "T", "--records", "R"], "--records does not go with --table"),
        (["--task", "none", "--records", "R"], "--records does not go with --task"),
        (["--table", "T", "--updates", "4"], "they take --budgets"),
        (["--table", "T", "--dataset", "D"], "--table does not go with --dataset"),
        (["--budgets", "160"], "--budgets belongs to --table or --task"),
        (["--task", "none", "--budgets", str(ENVS + 1)], f"take a multiple of {ENVS}"),
        (["--table", "T"], "cannot read the table"),
    ],
)
def test_flags_that_do_not_go_together_are_refused_in_a_line(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) <= 2


def test_a_table_of_one_split_is_not_learned_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "table.jsonl", _rows()[:40])
    assert main(["--table", str(table)]) == 2
    said = capsys.readouterr().err
    assert "has 40 questions to train on and 0 held out; 10 of each are needed" in said
    assert f"python -m benchmarks.operator_table --output {table}" in said


def _rows() -> list[Any]:
    """40 to train on and 20 held out; the first of two operators helps every other question."""
    return [
        row(
            number,
            {"qa": 0.5 if number % 2 else 0.7, "tidy": 0.4},
            split="train" if number < 40 else "heldout",
            observation=(float(number % 2), 0.25),
        )
        for number in range(60)
    ]
