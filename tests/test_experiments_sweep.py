"""Sweeps: what is run, interrupted, resumed and told; and where the golden middle lies."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.cli import main
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.reports.comparison import MINUTE, Comparison, compare
from query_mutator.reports.events import event_files
from query_mutator.reports.golden import surface
from query_mutator.reports.grid import combinations, label, parse_grid, plan
from query_mutator.reports.groups import Group
from query_mutator.reports.heatmap import draw, text_tables
from query_mutator.reports.runs import load_run
from query_mutator.reports.sweep_runs import SweepState, run_all
from query_mutator.reports.sweep_table import summary_table
from query_mutator.runs.directory import RunDirectory
from query_mutator.servers.simulated import SimulatedServer, answer_from_questions
from tests.conftest import SIMULATED_FLAGS
from tests.written_runs import write_run

GRID = ["batch-size=2,8", "num-processes=4,16,64"]
RETURN = "Reward/mean_return"


def test_every_combination_is_planned_with_every_seed() -> None:
    grid = parse_grid(GRID)
    runs = plan(grid, 2, ["--num-env-steps", "640"])
    assert len(runs) == 12
    assert [run.seed for run in runs] == [1] * 6 + [2] * 6, "the whole grid before the next seed"
    assert runs[4].name == "batch-size=8_num-processes=16_seed=1"
    flags = " ".join(runs[4].flags)
    assert "--num-env-steps 640 --batch-size 8 --num-processes 16 --seed 1" in flags
    assert "--no-eval" in flags


@pytest.mark.parametrize(
    ("processes", "steps", "expected"),
    [
        ("4,16,64", "640", {"4": 16, "16": 4, "64": 1}),
        ("8,16,32", "2000", {"8": 12, "16": 6, "32": 3}),
    ],
)
def test_all_runs_measure_at_the_same_steps_where_their_rollouts_allow_it(
    processes: str, steps: str, expected: dict[str, int]
) -> None:
    flags = ["--num-env-steps", steps, "--num-steps", "4"]
    runs = plan(parse_grid([f"num-processes={processes}"]), 1, flags)
    intervals = {run.combination[0]: int(run.flags[-1]) for run in runs}
    assert intervals == expected
    assert len({int(envs) * many for envs, many in intervals.items()}) == 1


def test_rollouts_with_no_common_multiple_measure_each_at_its_own_steps() -> None:
    flags = ["--num-env-steps", "640", "--num-steps", "4"]
    runs = plan(parse_grid(["num-processes=7,16,31"]), 1, flags)
    intervals = {run.combination[0]: run.flags[-1] for run in runs}
    assert intervals == {"7": "5", "16": "2", "31": "1"}, "every 128 steps or so"


def test_what_the_user_says_of_evaluation_stands() -> None:
    run = plan(parse_grid(GRID), 1, ["--use-eval", "--eval-interval", "3"])[0]
    assert "--no-eval" not in run.flags
    assert run.flags.count("--eval-interval") == 1


@pytest.mark.parametrize(
    ("grid", "flags", "told"),
    [
        ([], [], "needs --grid"),
        (["batch-size"], [], "NAME=VALUE,VALUE"),
        (["batchsize=1,2"], [], "near: batch-size"),
        (["seed=1,2"], [], "the sweep sets it"),
        (["cache=a,b"], [], "cannot be over --cache"),
        (["use-cache=1"], [], "needs a flag with values"),
        (["lr=1,1"], [], "given twice"),
        (["lr=0.1"], ["--lr", "1"], "given twice"),
        (["lr=0.1,-1"], [], "lr=-1: --lr must be above 0"),
        (["lr=0.1"], ["--run-dir", "x"], "the sweep sets it"),
        (["lr=0.1"], ["--cache", "x"], "add --share-cache"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    grid: list[str],
    flags: list[str],
    told: str,
) -> None:
    words = [word for text in grid for word in ("--grid", text)]
    assert main(["sweep", *words, "--output", str(tmp_path / "out"), "--", *flags]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def grid_of_runs(
    folder: Path, by_step: dict[str, float], seconds: dict[str, float], *, seeds: int = 2
) -> list[Group]:
    """Groups of seeds over lr=…: a rise to a score in four points, at a pace of their own."""
    groups = []
    for name, score in by_step.items():
        runs = []
        for seed in range(1, seeds + 1):
            curve = [score * part / 4 + 0.001 * seed for part in (1, 2, 3, 4)]
            path = write_run(folder / f"{name}-{seed}", {RETURN: curve}, seconds=seconds[name])
            runs.append(load_run(path))
        groups.append(Group(f"lr={name}", runs))
    return groups


def compared(groups: list[Group]) -> Comparison:
    return compare([run for group in groups for run in group.runs], groups, [RETURN])


def test_the_golden_middle_is_good_by_step_and_by_minute(tmp_path: Path) -> None:
    grid = parse_grid(["lr=0.1,0.2,0.3"])
    groups = grid_of_runs(
        tmp_path,
        {"0.1": 1.0, "0.2": 0.8, "0.3": 0.1},  # the slowest learns most by step
        {"0.1": 240, "0.2": 60, "0.3": 60},
        seeds=5,
    )
    comparison = compared(groups)
    found = surface(comparison, grid, by_minute=True)
    assert found is not None
    by_step, by_minute, both = found.views
    assert by_step.best() == [("0.1",)]
    assert by_minute.best() == [("0.2",)]
    assert found.golden == ("0.2",)
    assert both.values["0.3",] == 0
    assert found.alike == [], "the seeds of each are far closer to each other"
    assert "+0.803 at step 40 (number 2 of 3; best +1.003 with lr=0.1; worst" in found.reason
    assert "+0.803 at minute 4 (the best; worst" in found.reason
    assert f"both {both.values['0.2',]:.2f}." in found.reason
    assert "★ +0.80" in text_tables(found)
    by_step_only = surface(comparison, grid, by_minute=False)
    assert by_step_only is not None
    assert by_step_only.golden == ("0.1",)
    assert draw(found, tmp_path / "bars.png").stat().st_size > 10_000


def test_few_seeds_tell_nothing_apart(tmp_path: Path) -> None:
    grid = parse_grid(["lr=0.1,0.2,0.3"])
    scores = {"0.1": 1.0, "0.2": 0.8, "0.3": 0.1}
    found = surface(compared(grid_of_runs(tmp_path, scores, dict.fromkeys(scores, 60))), grid,
                    by_minute=True)  # fmt: skip
    assert found is not None
    assert found.golden == ("0.1",)
    assert found.alike == [("0.2",), ("0.3",)]
    assert "cannot tell it from any of the others" in found.reason


@pytest.mark.parametrize(
    ("scores", "seconds", "told"),
    [
        ({"0.1": 1.0, "0.2": 0.4}, {"0.1": 240, "0.2": 60}, "lr=0.1 by step .*, lr=0.2 by minute"),
        ({"0.1": 0.5, "0.2": 0.5}, {"0.1": 60, "0.2": 60}, "lr=0.1, lr=0.2 by step"),
    ],
    ids=["each best at one", "equal"],
)
def test_there_is_no_middle_where_none_is_better_at_both(
    tmp_path: Path, scores: dict[str, float], seconds: dict[str, float], told: str
) -> None:
    grid = parse_grid(["lr=0.1,0.2"])
    found = surface(compared(grid_of_runs(tmp_path, scores, seconds)), grid, by_minute=True)
    assert found is not None
    assert found.golden is None
    assert re.search(f"no golden middle: the best is {told}", found.reason)
    assert "★" not in text_tables(found)
    assert draw(found, tmp_path / "bars.png").stat().st_size > 10_000


def test_a_combination_counts_by_minute_only_with_all_its_seeds(tmp_path: Path) -> None:
    grid = parse_grid(["lr=0.1,0.2"])
    groups = grid_of_runs(tmp_path, {"0.1": 0.5, "0.2": 0.9}, {"0.1": 60, "0.2": 60})
    slow = write_run(tmp_path / "slow", {RETURN: [0.1] * 4}, seconds=1000)
    groups[1].runs.append(load_run(slow))
    comparison = compared(groups)
    cell = comparison.group_cells[RETURN, "lr=0.2", MINUTE]
    assert (cell.seeds, cell.of, cell.missing) == (2, 3, "2 of 3")
    found = surface(comparison, grid, by_minute=True)
    assert found is not None
    by_step, by_minute, _ = found.views
    assert set(by_step.values) == {("0.1",), ("0.2",)}
    assert set(by_minute.values) == {("0.1",)}
    table = summary_table(comparison, found, by_minute=True)
    assert re.search(r"lr=0.2 +3 .*\(2 of 3\)", table)


def test_a_combination_with_nothing_measured_leaves_a_gap(tmp_path: Path) -> None:
    grid = parse_grid(["lr=0.1,0.2", "gamma=0.5,1"])
    names = {combination: label(grid, combination) for combination in combinations(grid)}
    groups = []
    for index, combination in enumerate(combinations(grid)[:3]):
        path = write_run(tmp_path / str(index), {RETURN: [0.1 * index] * 2}, seconds=10 ** (index))
        groups.append(Group(names[combination], [load_run(path)]))
    found = surface(compared(groups), grid, by_minute=True)
    assert found is not None
    by_step, by_minute, _ = found.views
    assert len(by_step.values) == 3, "the fourth has failed"
    assert set(by_minute.values) == {("0.1", "0.5")}, "the others have not reported by then"
    assert "–" in text_tables(found)
    assert draw(found, tmp_path / "heat.png").stat().st_size > 10_000


def test_a_directory_of_another_sweep_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SweepState(tmp_path / "sweep", ["--lr", "0.1"], share_cache=False).begin()
    with pytest.raises(UserError, match="holds another sweep: -- --lr"):
        SweepState(tmp_path / "sweep", ["--lr", "0.2"], share_cache=False).begin()
    with pytest.raises(UserError, match="holds another sweep"):
        SweepState(tmp_path / "sweep", ["--lr", "0.1"], share_cache=True).begin()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="holds no sweep"):
        SweepState(tmp_path, [], share_cache=False).begin()


def test_what_a_killed_sweep_has_left_running_is_not_taken_away_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = plan(parse_grid(["lr=0.1"]), 1, [])
    state = SweepState(tmp_path, [], share_cache=False)
    state.begin()
    at_work = RunDirectory(tmp_path / run.name)
    at_work.create()
    outcome = run_all([run], tmp_path, state, jobs=1, share_cache=False)
    assert outcome.failed == [run.name]
    assert "another process is writing to" in capsys.readouterr().err
    assert at_work.path.is_dir()
    at_work.release()


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on_where_it_was_and_tells_of_a_run_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    folder = tmp_path / "sweep"
    flags = ["--mutator-model", SIMULATED_FLAGS[1], "--num-processes", "4", "--num-steps", "4"]
    flags += ["--num-env-steps", "96", "--num-questions", "48", "--eval-sample", "4"]
    answer = answer_from_questions(DEFAULT_FILE)
    with SimulatedServer(slots=8, mean_latency_s=0.03, answer=answer) as server:

        def command(*models: str) -> list[str]:
            grid = ["--grid", f"target-model={','.join(models)}", "--seeds", "1"]
            more = ["--output", str(folder), "--", "--server", server.url, *flags]
            return ["sweep", *grid, *more]

        both = command("llama3.2:3b", "absent:1b")
        sweep = subprocess.Popen(
            [sys.executable, "-m", "query_mutator", *both],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert sweep.stderr is not None
        for line in sweep.stderr:
            # Told before it is kept: at the second update the first is safe.
            if re.match(r"\d+%  32/192 steps", line):
                break
        sweep.send_signal(signal.SIGINT)
        assert "the same command goes on" in sweep.communicate(timeout=60)[1]
        assert sweep.returncode == 130
        run = folder / "target-model=llama3.2-3b_seed=1"
        saved = json.loads((run / "summary.json").read_text())["env_steps"]
        assert 0 < saved < 96
        cache = folder / "caches" / f"{run.name}.sqlite"
        with sqlite3.connect(cache) as connection:
            connection.execute("CREATE TABLE of_the_first_session (id)")

        assert main(both) == 1
        shown = capsys.readouterr()
        assert "target-model=absent-1b_seed=1 has failed: " in shown.err
        assert "absent:1b" in shown.err
        assert json.loads((run / "summary.json").read_text())["env_steps"] == 96
        assert len(event_files(run / "tensorboard")) == 1, "begun again: its speed counts"
        with sqlite3.connect(cache) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
        assert ("of_the_first_session",) not in tables, "its cache too"
        assert "golden middle: target-model=llama3.2:3b" in shown.out
        assert "nothing is proven" in shown.out
        assert (folder / "sweep.png").stat().st_size > 10_000

        server.reset_stats()
        assert main(command("llama3.2:3b")) == 0
        assert server.stats.generation_calls == 0, "a finished run is not run again"
        assert "golden middle" in capsys.readouterr().out
