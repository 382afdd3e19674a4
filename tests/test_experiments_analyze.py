"""Runs are compared as a careful person would: like with like, and no more certain than proven."""

from __future__ import annotations

import csv
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from query_mutator.cli import main
from query_mutator.reports.comparison import MINUTE, STEP, Comparison, Goal, compare, default_tags
from query_mutator.reports.groups import group_runs
from query_mutator.reports.runs import load_runs
from query_mutator.reports.statistics import interval, probability_of_improvement
from query_mutator.reports.tables import as_dict
from query_mutator.runs.metric_table import METRICS
from query_mutator.runs.metrics import better_of
from tests.written_runs import write_run

RETURN, LOSS, NORM = "Reward/mean_return", "Training/loss", "Gradients/norm_before_clip"
SHARE = "Performance/learner_percentage_training"


def compared(paths: list[Path], *tags: str, goals: tuple[Goal, ...] = ()) -> Comparison:
    runs = load_runs(paths)
    return compare(runs, group_runs(runs), list(tags) or default_tags(runs), goals)


def seeds(folder: Path, name: str, lr: float, last: list[float]) -> list[Path]:
    return [
        write_run(
            folder / f"{name}{seed}",
            {RETURN: [0.0, value], LOSS: [1.0, 1 - lr]},
            settings={"lr": lr, "seed": seed, "cache": f"{name}{seed}.sqlite"},
        )
        for seed, value in enumerate(last)
    ]


def test_the_best_is_found_the_right_way_round_with_its_step_and_minute(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", {RETURN: [0.1, 0.5, 0.2], LOSS: [3, -4, 2]})
    cells = compared([path]).cells
    best = cells[RETURN, "a"].best
    assert best is not None
    assert (round(best.value, 6), best.step, best.minute) == (0.5, 20, 2)
    lowest = cells[LOSS, "a"].best
    assert lowest is not None
    assert (lowest.value, lowest.step) == (-4, 20)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_never_wins(tmp_path: Path, bad: float) -> None:
    path = write_run(tmp_path / "a", {RETURN: [bad, 1, bad], LOSS: [bad, 1, bad]})
    comparison = compared([path])
    for tag in (RETURN, LOSS):
        cell = comparison.cells[tag, "a"]
        assert cell.best is not None
        assert (cell.best.value, cell.at_step) == (1, 1)
    told = as_dict(comparison)
    assert sum("not a finite number in a (2 points)" in line for line in told["warnings"]) == 2
    json.dumps(told, allow_nan=False)


def test_runs_are_cut_at_the_shortest_by_step_and_by_minute(tmp_path: Path) -> None:
    rising = [float(value) for value in range(1, 9)]
    long = write_run(tmp_path / "long", {RETURN: rising}, seconds=60)
    short = write_run(tmp_path / "short", {RETURN: rising[:4]}, seconds=180)
    comparison = compared([long, short])
    assert (comparison.last_step, comparison.last_minute) == (40, 8)
    assert comparison.cells[RETURN, "long"].at_step == 4
    assert comparison.cells[RETURN, "short"].at_step == 4
    assert comparison.cells[RETURN, "long"].at_minute == 8
    assert comparison.cells[RETURN, "short"].at_minute == 2, "its third point comes at minute 9"


def test_what_is_counted_is_summed_and_what_is_measured_averaged(tmp_path: Path) -> None:
    failed = "Failures/failed_calls"
    curves = {failed: [1.0] * 20, RETURN: [0.0] * 18 + [1.0, 3.0]}
    comparison = compared([write_run(tmp_path / "a", curves)])
    cell = comparison.cells[failed, "a"]
    assert (cell.at_step, cell.total) == (20, 20)
    assert cell.best is None, "a run without failures at first is not the best for that"
    assert comparison.cells[RETURN, "a"].at_step == pytest.approx(4 / 3), "the steps 180 to 200"


def test_ratios_give_way_to_differences_near_and_below_zero(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", {RETURN: [-0.5], LOSS: [2], NORM: [1e-9]})
    second = write_run(tmp_path / "b", {RETURN: [0.5], LOSS: [3], NORM: [1]})
    rows = {row["metric"]: row for row in as_dict(compared([first, second]))["rows"][1::2]}
    assert rows[LOSS]["at_step_ratio"] == 1.5
    assert rows[RETURN]["at_step_ratio"] is None
    assert rows[RETURN]["at_step_difference"] == 1
    assert rows[NORM]["at_step_ratio"] is None


def test_steps_and_minutes_to_a_threshold(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", {RETURN: [0, 2, 1, 3], LOSS: [4, 3, 2, 5]})
    goals = (Goal(RETURN, 1.5, "higher"), Goal(LOSS, 2, "lower"), Goal(LOSS, 1, "lower"))
    reached = compared([path], goals=goals).reached
    first, second = reached[goals[0], "a"], reached[goals[1], "a"]
    assert first is not None
    assert second is not None
    assert (first.step, first.minute) == (20, 2)
    assert second.step == 30
    assert reached[goals[2], "a"] is None


def test_runs_that_differ_only_by_seed_are_judged_together(tmp_path: Path) -> None:
    low, high = [0.1, 0.2, 0.3, 0.4], [0.3, 0.5, 0.6, 9.0]
    paths = seeds(tmp_path, "low", 0.01, low) + seeds(tmp_path, "high", 0.1, high)
    comparison = compared(paths)
    assert [group.name for group in comparison.groups] == ["lr=0.01", "lr=0.1"]
    assert [group.seeds for group in comparison.groups] == [4, 4]
    for view in (STEP, MINUTE):
        cell = comparison.group_cells[RETURN, "lr=0.1", view]
        assert cell.iqm == pytest.approx(0.55), "the mean of the middle half"
        assert cell.improvement == pytest.approx((1 * 2.5 + 3 * 4) / 16)
        assert cell.interval == (pytest.approx(0.3), 9), "few seeds have only a range"
        assert cell.improvement_interval is None
    assert comparison.group_cells[LOSS, "lr=0.1", STEP].improvement == 1, "lower is better"
    assert "4 seeds give no interval" in as_dict(comparison)["evidence"]


def test_five_seeds_have_intervals(tmp_path: Path) -> None:
    paths = seeds(tmp_path, "low", 0.01, [0.1, 0.2, 0.3, 0.4, 0.5])
    paths += seeds(tmp_path, "high", 0.1, [0.3, 0.5, 0.6, 0.7, 9.0])
    cell = compared(paths).group_cells[RETURN, "lr=0.1", STEP]
    assert cell.interval is not None
    assert 0.3 < cell.interval[0] < cell.iqm < cell.interval[1] < 9
    assert cell.improvement_interval is not None
    assert cell.improvement is not None
    assert cell.improvement_interval[0] < cell.improvement < cell.improvement_interval[1] <= 1


def test_a_single_seed_is_not_said_to_be_better(tmp_path: Path) -> None:
    paths = seeds(tmp_path, "a", 0.01, [0.1, 0.2]) + seeds(tmp_path, "b", 0.1, [0.9])
    cells = compared(paths).group_cells
    assert [cell.improvement for cell in cells.values()] == [None] * len(cells)


def test_runs_of_one_seed_count_as_one(tmp_path: Path) -> None:
    paths = seeds(tmp_path, "a", 0.01, [0.2, 0.6])
    again = seeds(tmp_path, "again", 0.01, [0.4])
    cell = compared([*paths, *again]).group_cells[RETURN, "a0 and other seeds", STEP]
    assert (cell.seeds, cell.iqm) == (2, pytest.approx((0.3 + 0.6) / 2))
    assert cell.interval == (pytest.approx(0.3), pytest.approx(0.6))


def test_one_seed_each_proves_nothing(tmp_path: Path) -> None:
    paths = seeds(tmp_path, "a", 0.01, [0.1]) + seeds(tmp_path, "b", 0.1, [0.2])
    assert "nothing is proven" in as_dict(compared(paths))["evidence"]
    same = seeds(tmp_path, "c", 0.01, [0.1])  # the same seed again
    assert "nothing is proven" in as_dict(compared([paths[0], *same]))["evidence"]


def test_the_statistics_are_those_of_the_literature() -> None:
    assert interval([1.0]) is None
    assert interval([2.0, 2.0, 2.0]) == (2.0, 2.0)
    assert probability_of_improvement([1, 1], [1, 1]) == 0.5
    assert probability_of_improvement([2, 3], [0, 1], better="lower") == 0


@pytest.mark.parametrize(
    ("norms", "told"),
    [([99.0], None), ([1, 150.0, 1], "above 100"), ([150, 300.0], "above 200")],
)
def test_exploding_gradients_are_told(tmp_path: Path, norms: list[float], told: str | None) -> None:
    warnings = as_dict(compared([write_run(tmp_path / "a", {NORM: norms})]))["warnings"]
    assert len(warnings) == (told is not None)
    if told:
        assert told in warnings[0]
        assert f"({max(norms):g} at step 20)" in warnings[0]


def test_a_starved_learner_is_told_once_for_all_runs(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / f"r{index}", {SHARE: [1, 60]}) for index in range(5)]
    (warning,) = as_dict(compared(paths))["warnings"]
    assert "below 50 in all 5 runs, such as r0 (30.5 on average)" in warning
    assert "learner starved" in warning
    busy = write_run(tmp_path / "busy", {SHARE: [1, 100]})
    assert as_dict(compared([busy]))["warnings"] == []


def test_a_lower_loss_with_a_worse_score_is_told(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", {RETURN: [0.5], LOSS: [2]})
    misled = write_run(tmp_path / "b", {RETURN: [0.1], LOSS: [1]})
    better = write_run(tmp_path / "c", {RETURN: [0.9], LOSS: [1]})
    (warning,) = as_dict(compared([first, misled, better]))["warnings"]
    assert "lower loss but worse score than a in b (" in warning
    assert "c (" not in warning


def test_every_metric_named_by_the_issue_matters() -> None:
    matter = {metric.tag for metric in METRICS if metric.matters}
    assert {"Reward/heldout", RETURN, LOSS, NORM, SHARE, "RL/value_mean"} <= matter
    assert {"Performance/transitions_per_second", "Failures/failed_calls"} <= matter


@pytest.mark.parametrize("kind", ["table", "markdown", "csv", "json"])
def test_the_command_writes_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    for path in seeds(tmp_path, "a", 0.01, [0.1, 0.2]) + seeds(tmp_path, "b", 0.1, [0.3, 0.4]):
        assert path.exists()
    flags = ["--logdir", str(tmp_path), "--threshold", f"{RETURN}=0.15", "--format", kind]
    assert main(["analyze", *flags]) == 0
    text = capsys.readouterr().out
    if kind == "json":
        rows: list[dict[str, Any]] = json.loads(text)["rows"]
        assert len(rows) == 8
    elif kind == "csv":
        rows = list(csv.DictReader(text.splitlines()))
        assert len(rows) == 8
        assert rows[0]["reached_step>=0.15"] == ""
        assert rows[1]["reached_step>=0.15"] == "20"
    else:
        assert ("| a0 | 0.1 | 20 | 2.00 |" in text) == (kind == "markdown")
        assert "lr=0.1 " in text
        assert f"reached {RETURN} ≥ 0.15" in text
        assert "2 seeds give no interval" in text
        assert "range of seeds" in text
        assert "95 % interval" not in text
    out = tmp_path / "file"
    assert main(["analyze", *flags, "--output", str(out)]) == 0
    assert out.read_text() == text


def test_a_threshold_brings_its_metric_into_the_csv_and_equal_values_stay_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "a", {RETURN: [0, 1, 2], LOSS: [0, 0, 3], "mine": [0, 0, 1]})
    flags = ["--metrics", RETURN, "--threshold", f"{RETURN}=1", "--threshold", f"{LOSS}>=1"]
    flags += ["--threshold", "mine>=1", "--format"]
    assert main(["analyze", str(run), *flags, "csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    reached = {row["metric"]: (row["reached_step>=1"], row["reached_minute>=1"]) for row in rows}
    assert reached == {RETURN: ("20", "2.0"), LOSS: ("30", "3.0"), "mine": ("30", "3.0")}
    assert main(["analyze", str(run), *flags, "json"]) == 0
    of_loss = json.loads(capsys.readouterr().out)["thresholds"][1]
    assert (of_loss["better"], of_loss["value"], of_loss["reached_value"]) == ("higher", 1, 3)


def test_a_run_without_points_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = write_run(tmp_path / "full", {RETURN: [0.1, 0.2]})
    empty = write_run(tmp_path / "empty", {})
    comparison = compared([empty, full])
    assert (comparison.last_step, comparison.last_minute) == (20, 2)
    assert [run.name for run in comparison.runs] == ["full"]
    assert [record.message for record in caplog.records] == [
        "empty has no points yet: it is left out"
    ]


def test_groups_are_named_as_people_write_settings_and_without_passwords(tmp_path: Path) -> None:
    servers = (["http://me:secret@first:1", "http://second:2"], [f"http://{'long' * 40}:1"])
    paths = [
        write_run(tmp_path / f"{index}{seed}", {RETURN: [1]}, settings={"server": s, "seed": seed})
        for index, s in enumerate(servers)
        for seed in (1, 2)
    ]
    first, second = (group.name for group in group_runs(load_runs(paths)))
    assert first == "server=http://…@first:1,http://second:2"
    assert second.startswith("server=http://longlong")
    assert second.endswith("l…")
    assert len(second) < 60


def test_a_directory_whose_name_is_no_text_is_written_all_the_same(tmp_path: Path) -> None:
    run = write_run(tmp_path / os.fsdecode(b"r\xff"), {RETURN: [1]})
    for words in (["analyze", str(run), "--format", "json"],
                  ["extract", "--runs", str(run), "--metrics", RETURN]):  # fmt: skip
        out = tmp_path / f"{words[0]}.jsonl"
        assert main([*words, "--output", str(out)]) == 0
        assert '"run": "r?"' in out.read_text(encoding="utf-8")


def test_which_way_is_better_is_told_only_where_one_is() -> None:
    ways = [better_of(tag) for tag in (SHARE, "Time/learning", "rollout/ep_len_mean")]
    assert ways == ["", "", ""]
    assert better_of("rollout/ep_rew_mean") == "higher"


def test_mistakes_are_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(write_run(tmp_path / "a", {RETURN: [0.1], "RL/value_mean": [1]}))
    cases = {
        f"analyze {run} --metrics Reward/mean_retrun": "near: Reward/mean_return",
        f"analyze {run} --threshold Reward/mean_return": "must be TAG=VALUE",
        f"analyze {run} --threshold RL/value_mean=1": "'RL/value_mean>=1'",
        f"analyze {run} --group x=b": "no run is called b; there are: a",
        f"analyze {run} --group x=a --group y=a": "a is in two groups, x and y",
        f"analyze {tmp_path / 'none'}": "is no directory",
        "analyze": "name the directories of runs",
        f"extract --runs {run} --metrics return --output x.csv": "near: Reward/mean_return",
        f"extract --runs {run} --metrics {RETURN} --output x.txt": "must end in .csv or .jsonl",
        f"extract --runs {run}": "needs --metrics and --output",
    }
    for command, told in cases.items():
        assert main(command.split()) == 2, command
        shown = capsys.readouterr()
        assert told in shown.err
        assert shown.err.count("\n") <= 2
    assert main(["analyze", run, "--threshold", "RL/value_mean>=1"]) == 0


def test_other_programs_runs_are_groups_of_their_own_unless_told(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, {"rollout/ep_rew_mean": [1, 2]}) for name in "abc"]
    runs = load_runs(paths)
    assert [group.name for group in group_runs(runs)] == ["a", "b", "c"]
    groups = group_runs(runs, ["old=a,b"])
    assert [(group.name, group.seeds) for group in groups] == [("old", 2), ("c", 1)]
    assert default_tags(runs) == ["rollout/ep_rew_mean"]


def test_extract_writes_every_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [index / 7 for index in range(10_100)]  # TensorBoard would keep 10,000 of them
    values[9_999] = math.nan
    runs = [
        str(write_run(tmp_path / name, {LOSS: points, RETURN: [1]}))
        for name, points in (("a", values), ("b", [1.0]))
    ]
    assert main(["extract", "--runs", *runs, "--list-tags"]) == 0
    assert f"{LOSS}  10,101 points  2 of 2 runs" in capsys.readouterr().out
    out = tmp_path / "out.csv"
    assert main(["extract", "--runs", *runs, "--metrics", LOSS, "--output", str(out)]) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 10_101
    assert set(rows[0]) == {"run", "tag", "step", "minute", "wall_time", "value"}
    assert (rows[1]["run"], rows[1]["step"], rows[1]["minute"]) == ("a", "20", "2.0")
    assert float(rows[1]["value"]) == pytest.approx(1 / 7)
    assert rows[9_999]["value"] == "nan"
    lines = tmp_path / "out.jsonl"
    assert main(["extract", "--runs", *runs, "--metrics", LOSS, "--output", str(lines)]) == 0
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [record["value"] for record in records[9_998:10_001:2]] == [
        float(rows[index]["value"]) for index in (9_998, 10_000)
    ]
    assert records[9_999]["value"] is None
