"""Runs that are killed at any moment, interrupted, or left without room, and that go on exactly."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from query_mutator.base.errors import UserError
from query_mutator.base.files import size_of
from query_mutator.runs.checkpoints import Checkpoint
from query_mutator.runs.curves import event_files
from query_mutator.runs.directory import CONFIG, RunDirectory
from query_mutator.servers.simulated import start_simulated
from query_mutator.training.interrupts import Interrupts
from tests import killable
from tests.conftest import FEW_QUESTIONS, SIMULATED_FLAGS, last_checkpoint
from tests.killable import ended, until, until_said
from train_query_mutator import main

KILLS = 26
RESUMED_AT = 8
"""Places that it goes on from, at least."""
TIMED = ("Performance/", "Servers/", "Time/")
"""Curves of how fast it went."""
BY_THE_CLOCK = {"calls", "wall_time_s", "collect_s", "learn_s"}
FLAGS = ["--num-processes", "4", "--num-steps", "2", "--num-questions", "8", "--no-eval"]
FLAGS += ["--max-rewrites", "2", "--hidden-size", "8", "--temperature-mutation", "0.5"]
FLAGS += ["--use-linear-lr-decay", "--eval-interval", "3", "--eval-sample", "2"]
FLAGS += ["--ppo-epoch", "2", "--batch-size", "4", "--only-operators", "rephrase,qa,tidy"]
FLAGS += ["--dataset", str(FEW_QUESTIONS), "--no-report"]
MANY_STEPS = 196
FEW_STEPS = ["--num-env-steps", "60"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    flags = [
        "--mean-latency",
        "0.005",
        "--sigma",
        "1",
        "--questions",
        str(FEW_QUESTIONS),
    ]
    with start_simulated(*flags) as server:
        yield server.url


@pytest.fixture(scope="module")
def whole(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps that was never interrupted."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert ended(start(run, url, *FEW_STEPS, "--no-cache")) == 0
    return run


def start(
    run: Path, url: str, *flags: str, kill_at: int = 0, largest_file: int = 0
) -> ForkServerProcess:
    """Begins a run, or goes on with one that has begun."""
    argv = ["--run-dir", str(run), "--server", url, *flags]
    argv += ["--resume"] if (run / CONFIG).exists() else [*SIMULATED_FLAGS, *FLAGS]
    return killable.forked(killable.command, main, argv, log_of(run), run, kill_at, largest_file)


def log_of(run: Path) -> Path:
    return run.with_suffix(".log")


def until_longer(file: Path, size: int, process: ForkServerProcess) -> None:
    until(lambda: size_of(file) > size, process)


def raw_curves(run: Path) -> dict[str, list[tuple[int, float]]]:
    """Every point in the event files of a run, in order, whatever a reader would purge."""
    curves = defaultdict(list)
    for name in event_files(run / "tensorboard"):
        for event in EventFileLoader(str(run / "tensorboard" / name)).Load():
            for value in event.summary.value:
                if not value.tag.startswith(TIMED):
                    curves[value.tag].append((event.step, value.tensor.float_val[0]))
    return curves


def untimed(checkpoint: Checkpoint) -> dict[str, Any]:
    """The plain values of a checkpoint that do not depend on the clock."""
    state = {name: value for name, value in checkpoint.state.items() if name != "curves"}
    state["counts"] = {
        name: value for name, value in state["counts"].items() if name not in BY_THE_CLOCK
    }
    return state


def assert_same_run(left: Path, right: Path) -> None:
    first, second = last_checkpoint(left), last_checkpoint(right)
    assert first.tensors.keys() == second.tensors.keys()
    assert any(name.startswith("optimizer.") for name in first.tensors)
    for name, tensor in first.tensors.items():
        assert torch.equal(tensor, second.tensors[name]), name
    assert untimed(first) == untimed(second)
    assert (left / "transitions.jsonl").read_bytes() == (right / "transitions.jsonl").read_bytes()
    curves = raw_curves(left)
    assert curves == raw_curves(right)
    assert all(len(dict(points)) == len(points) for points in curves.values())
    assert {"Reward/mean_reward", "Reward/heldout"} <= curves.keys()


@pytest.mark.slow
def test_a_run_killed_again_and_again_equals_one_that_was_not(tmp_path: Path, url: str) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    log = parts / "transitions.jsonl"
    steps = ["--num-env-steps", str(MANY_STEPS)]
    assert ended(start(whole, url, *steps, "--no-cache")) == 0

    done = 0
    resumed_at: set[int] = set()
    for kill in range(3 * KILLS):
        if kill >= KILLS and len(resumed_at) >= RESUMED_AT:
            break  # a busy machine gets less far between two kills
        draw = random.Random(kill)
        # What may change without being another run does so: cache, calls at once, checkpoints.
        cache = ["--cache", str(tmp_path / "cache")] if draw.random() < 0.5 else ["--no-cache"]
        flags = [*cache, "--batch-size", str(draw.randint(1, 8))]
        flags += ["--save-interval", str(draw.randint(1, 3)), *([] if parts.exists() else steps)]
        ahead = done / MANY_STEPS > min(kill, KILLS) / (
            KILLS + 6
        )  # it must not end before the last kill
        if ahead:
            process = start(parts, url, *flags, kill_at=draw.randint(1, 25))
        elif kill % 2:
            process = start(parts, url, *flags, kill_at=draw.randint(34, 44))
        else:
            size = size_of(log)
            process = start(parts, url, *flags)
            if kill % 4:
                until_longer(log, size, process)
            process.join(draw.uniform(0.0, 0.3))
            process.kill()
        assert ended(process) == -signal.SIGKILL, log_of(parts).read_text()
        if (parts / CONFIG).exists():
            done = last_checkpoint(parts).state["counts"]["env_steps"]
            resumed_at.add(done)
            curves = [parts / "tensorboard" / name for name in event_files(parts / "tensorboard")]
            for torn in (log, *curves):
                if draw.random() < 0.3 and torn.exists():  # as a kill in the midst of a write does
                    with torn.open("ab") as file:
                        file.write(b'{"update": 1, "en')
    assert ended(start(parts, url)) == 0, log_of(parts).read_text()
    assert "Traceback" not in log_of(parts).read_text()
    assert len(resumed_at) >= RESUMED_AT, "the kills did not reach into the run"
    assert_same_run(whole, parts)
    left = {path.name for path in parts.iterdir()}
    assert left == {path.name for path in whole.iterdir()}
    assert len(list((parts / "checkpoints").iterdir())) == 3


def a_checkpoint(step: int) -> Checkpoint:
    return Checkpoint({"policy.weight": torch.full((3,), float(step))}, {"step": step})


def test_a_run_killed_as_it_begins_is_absent_begun_again_or_resumable(tmp_path: Path) -> None:
    found = set()
    for kill_at in range(1, 100):
        path = tmp_path / str(kill_at) / "run"
        code = ended(killable.forked(killable.begin, path, a_checkpoint(0), kill_at))
        run = RunDirectory(path)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        if (path / CONFIG).exists():
            run.check_resumable()
            assert last_checkpoint(path).state == {"step": 0}
            found.add("resumable")
        else:
            found.add("begun again" if path.exists() and os.listdir(path) else "absent")
            assert ended(killable.forked(killable.begin, path, a_checkpoint(0), 0)) == 0
            assert sorted(os.listdir(path)) == ["checkpoints", "config.json", "summary.json"]
    assert code == 0
    assert found == {"absent", "begun again", "resumable"}
    assert path.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o077 == 0 for file in path.rglob("*"))


def test_only_what_a_beginning_leaves_is_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    precious = tmp_path / "checkpoints" / "model.safetensors"
    precious.write_bytes(b"")
    with pytest.raises(UserError, match="is not empty"):
        RunDirectory(tmp_path).create()
    assert precious.exists()


def test_a_process_killed_as_it_saves_leaves_whole_checkpoints(tmp_path: Path) -> None:
    for kill_at in range(1, 100):
        store = RunDirectory(tmp_path / str(kill_at)).checkpoints
        store.directory.mkdir(parents=True)
        for step in (1, 2, 3):
            store.save(step, a_checkpoint(step))
        process = killable.forked(killable.save, store.directory, 4, a_checkpoint(4), kill_at)
        code = ended(process)
        last = store.newest(tensor_bytes=1000)
        assert last.state["step"] in ({3, 4} if code else {4})
        assert last.tensors["policy.weight"].tolist() == [last.state["step"]] * 3
        store.tidy(last.state["step"])
        store.save(5, a_checkpoint(5))
        assert len(os.listdir(store.directory)) == 3
        if code == 0:
            break
    assert kill_at > 4
    assert code == 0


def stop_twice(log: Path, in_save: bool) -> None:
    """Is signalled a second time while it saves, or while it takes its time to end."""

    def save() -> None:
        if in_save:
            os.kill(os.getpid(), signal.SIGTERM)
        log.write_text("saved")

    with Interrupts(save, "go on so"):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            log.write_text("not left at once")


@pytest.mark.parametrize("in_save", [True, False])
def test_a_second_ctrl_c_ends_the_process_as_soon_as_all_is_saved(
    in_save: bool, tmp_path: Path
) -> None:
    assert ended(killable.forked(stop_twice, tmp_path / "log", in_save)) == 130
    assert (tmp_path / "log").read_text() == "saved"


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_twice_loses_at_most_a_rollout(
    second: signal.Signals, whole: Path, tmp_path: Path, url: str
) -> None:
    parts = tmp_path / "parts"
    process = start(parts, url, *FEW_STEPS, "--save-interval", "1000", "--no-cache")
    until_said("update 3/", log_of(parts), process)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    os.kill(process.pid, second)
    assert ended(process) == 130
    said = log_of(parts).read_text()
    assert "Traceback" not in said
    assert f"go on with: python train_query_mutator.py --resume --run-dir {parts}" in said
    assert last_checkpoint(parts).state["counts"]["update"] >= 2
    assert ended(start(parts, url)) == 0
    assert_same_run(whole, parts)


@pytest.mark.parametrize("full", ["transitions.jsonl", "checkpoints"])
def test_a_full_disk_stops_the_run_and_it_goes_on_when_there_is_room(
    full: str, whole: Path, tmp_path: Path, url: str
) -> None:
    parts = tmp_path / "parts"
    log, checkpoint = whole / "transitions.jsonl", RunDirectory(whole).checkpoints.paths()[-1]
    assert log.stat().st_size > 1.5 * checkpoint.stat().st_size
    most = int(0.9 * (log if full == log.name else checkpoint).stat().st_size)
    assert ended(start(parts, url, *FEW_STEPS, "--no-cache", largest_file=most)) == 1
    said = log_of(parts).read_text()
    assert "Traceback" not in said
    assert f"File too large: {parts / full}" in said
    assert "make room, then go on with: python train_query_mutator.py --resume" in said
    assert (parts / "transitions.jsonl").read_bytes().endswith(b"\n")
    assert ended(start(parts, url)) == 0
    assert_same_run(whole, parts)


def test_a_disk_that_is_full_at_the_start_leaves_nothing(tmp_path: Path, url: str) -> None:
    run = tmp_path / "run"
    assert ended(start(run, url, "--num-env-steps", "16", "--no-cache", largest_file=2000)) == 2
    assert f"cannot write to {run}: File too large" in log_of(run).read_text()
    assert not run.exists()


@pytest.mark.parametrize("gone", ["tensorboard", "run"])
def test_curves_that_cannot_be_written_are_told_once_and_a_deleted_run_ends(
    gone: str, tmp_path: Path, url: str
) -> None:
    run = tmp_path / "run"
    process = start(run, url, *FEW_STEPS, "--no-cache", "--save-interval", "1000")
    until(lambda: bool(event_files(run / "tensorboard")), process)
    aside = tmp_path / "aside"
    if gone == "tensorboard":
        (run / "tensorboard").rename(aside)
        (run / "tensorboard").write_text("a file in its place")
        assert ended(process) == 0
        assert log_of(run).read_text().count("warning: cannot write the curves to") == 1
    else:
        run.rename(aside)
        shutil.rmtree(aside)
        assert ended(process) == 1
        said = log_of(run).read_text()
        assert "The directory of the run has gone, and its work with it" in said
        assert "Traceback" not in said
