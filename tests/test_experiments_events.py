"""Event files of real writers are read whole: every point, restarts, torn and damaged files."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto
from torch.utils.tensorboard import SummaryWriter

from benchmarks.reading import PLANTED, TAG, write_scalars
from query_mutator.base.errors import UserError
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.reports.events import event_files, read_curves
from query_mutator.reports.runs import find_runs, load_run, load_runs
from query_mutator.servers.simulated import SimulatedServer, answer_from_questions
from tests.test_training import scalars, train
from tests.written_runs import START, write_events


def write(directory: Path, points: Sequence[tuple[str, int, float, float]], **options: Any) -> None:
    """Points of a tag, a step, a value and seconds after START, as torch writes them."""
    with SummaryWriter(str(directory), **options) as writer:
        for tag, step, value, second in points:
            writer.add_scalar(tag, value, step, walltime=START + second)


def test_a_planted_minimum_among_many_points_is_found_exactly(tmp_path: Path) -> None:
    write_scalars(tmp_path, 20_000, planted_at=13_333)
    curve = read_curves(tmp_path)[TAG]
    assert len(curve) == 20_000
    lowest = curve.values.argmin()
    assert (curve.steps[lowest], curve.values[lowest]) == (13_333, np.float32(PLANTED))


def test_both_kinds_of_scalars_are_read_and_nothing_else(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("simple", 0.25, 7)
        writer.add_scalar("tensor", 0.75, 8, new_style=True)
        writer.add_scalar("tensor/double", 1e-300, 9, new_style=True, double_precision=True)
        writer.add_text("words", "no number", 1)
        writer.add_histogram("histogram", np.arange(5), 1)
    curves = read_curves(tmp_path)
    assert set(curves) == {"simple", "tensor", "tensor/double"}
    assert (curves["simple"].steps[0], curves["simple"].values[0]) == (7, 0.25)
    assert (curves["tensor"].steps[0], curves["tensor"].values[0]) == (8, 0.75)
    assert curves["tensor/double"].values[0] == 1e-300


def test_scalars_that_are_not_one_number_are_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    odd = {
        "empty": TensorProto(dtype=1),
        "torn": TensorProto(dtype=1, tensor_content=b"abc"),
        "two": TensorProto(dtype=1, float_val=[1, 2]),
        "words": make_tensor_proto("one"),
        "integers": make_tensor_proto(np.arange(3)),
    }
    plugin = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    with (tmp_path / "events.out.tfevents.1").open("wb") as file:
        writer = RecordWriter(file)
        for tag, tensor in (*odd.items(), ("good", make_tensor_proto(np.int64(7)))):
            value = Summary.Value(tag=tag, tensor=tensor, metadata=plugin)
            event = Event(wall_time=START, step=3, summary=Summary(value=[value]))
            writer.write(event.SerializeToString())
    curves = read_curves(tmp_path)
    assert set(curves) == {"good"}
    assert curves["good"].values.tolist() == [7]
    told = [record.message.split(": ")[1] for record in caplog.records]
    assert told == [f"{tag} is not always one number" for tag in sorted(odd)]


def test_a_restart_mark_voids_what_was_written_from_its_step_on(tmp_path: Path) -> None:
    write(tmp_path, [("a", 10, 1, 10), ("b", 15, 5, 15), ("a", 20, 2, 20), ("a", 30, 3, 30)])
    write(tmp_path, [("a", 21, -2, 1000)], purge_step=12)
    curves = read_curves(tmp_path)
    assert curves["a"].steps.tolist() == [10, 21]
    assert curves["a"].values.tolist() == [1, -2]
    assert "b" not in curves, "written after the restart's step, by a session that was given up"


def test_a_later_file_that_begins_earlier_replaces_what_was_there(tmp_path: Path) -> None:
    write(tmp_path, [("a", step, 1, step) for step in (10, 20, 30)] + [("epoch", 1, 1, 30)])
    write(tmp_path, [("a", 20, 2, 1020), ("a", 30, 2, 1030), ("epoch", 2, 2, 1030)])
    curves = read_curves(tmp_path)
    assert curves["a"].steps.tolist() == [10, 20, 30]
    assert curves["a"].values.tolist() == [1, 2, 2]
    assert curves["epoch"].values.tolist() == [1, 2], "each tag counts its own steps"


def test_pauses_between_sessions_are_no_training_time(tmp_path: Path) -> None:
    write_events(tmp_path, [("a", 1, 1, 60), ("a", 2, 1, 120)], began_s=0)
    write_events(tmp_path, [("a", 3, 1, 10_060)], began_s=10_000)
    assert read_curves(tmp_path)["a"].minutes.tolist() == [1, 2, 3]


def test_a_torn_tail_ends_the_file_quietly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, [("a", step, step, step) for step in range(10)])
    (file,) = event_files(tmp_path)
    whole = file.read_bytes()
    for cut in (1, 5, 30):
        file.write_bytes(whole[:-cut])
        assert read_curves(tmp_path)["a"].steps.tolist() == list(range(9))
    assert not caplog.records


@pytest.mark.parametrize("offset", [0, 12], ids=["length", "content"])
def test_damage_in_the_middle_is_told_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, offset: int
) -> None:
    write(tmp_path, [("a", step, step, step) for step in range(10)])
    (file,) = event_files(tmp_path)
    content = bytearray(file.read_bytes())
    position = 0
    for _ in range(1 + 4):  # the file's version, then the points of the steps 0 to 3
        position += int.from_bytes(content[position : position + 8], "little") + 16
    content[position + offset] ^= 0xFF
    file.write_bytes(bytes(content))
    with caplog.at_level(logging.WARNING):
        assert read_curves(tmp_path)["a"].steps.tolist() == [0, 1, 2, 3]
    assert ["is damaged" in record.message for record in caplog.records] == [True]


def test_the_minutes_of_our_run_begin_before_its_first_question(tmp_path: Path) -> None:
    asked = []
    answer = answer_from_questions(DEFAULT_FILE)

    def noted(model: str, system: str, prompt: str, seed: int = 0) -> str:
        asked.append(time.time())
        return answer(model, system, prompt, seed)

    with SimulatedServer(answer=noted) as server:
        assert train(server, tmp_path / "run", "--num-env-steps", "16") == 0
    loss = load_run(tmp_path / "run").curves["Training/loss"]
    assert loss.times[0] - 60 * loss.minutes[0] <= min(asked)


def test_our_run_resumed_twice_is_one_curve(server: SimulatedServer, tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert train(server, path, "--num-env-steps", "16") == 0
    assert train(server, path, "--resume", "--num-env-steps", "32") == 0
    given_up = load_run(path).curves["Training/loss"]
    max((path / "checkpoints").iterdir()).unlink()  # as if killed before it was saved
    assert train(server, path, "--resume", "--num-env-steps", "48") == 0

    assert len(event_files(path / "tensorboard")) == 2, "what was given up is gone"
    run = load_run(path)
    assert run.config is not None
    assert run.summary is not None
    assert run.summary["env_steps"] == 48
    expected = scalars(path)
    assert set(run.curves) == set(expected)
    for tag, curve in run.curves.items():
        assert list(zip(curve.steps, curve.values, strict=True)) == expected[tag]
    loss = run.curves["Training/loss"]
    assert loss.steps.tolist() == [16, 32, 48]
    assert loss.times[1] > given_up.times[1], "the steps done again are the ones that count"
    assert (np.diff(loss.minutes) > 0).all()


@pytest.mark.parametrize("config", ['{"lr": 0.1}', "lr: 0.1", "[1]"])
def test_other_programs_may_have_files_named_like_ours(tmp_path: Path, config: str) -> None:
    beside, above = tmp_path / "beside", tmp_path / "above"
    for path in (beside, above / "tensorboard"):
        write(path, [("a", 1, 2, 3)])
    for path in (beside, above):
        (path / "config.json").write_text(config)
        (path / "summary.json").write_text("no JSON")
    found = find_runs(tmp_path)
    assert found == [above / "tensorboard", beside]
    for run in load_runs(found):
        assert (run.config, run.summary) == (None, None)
        assert run.curves["a"].values.tolist() == [2]
    with pytest.raises(UserError, match="not that of a run of ours, or damaged"):
        load_run(above)


@pytest.mark.slow
def test_a_run_of_stable_baselines_continued_once_is_read(tmp_path: Path) -> None:
    from stable_baselines3 import PPO

    options: dict[str, Any] = {"n_steps": 64, "batch_size": 32, "n_epochs": 1, "device": "cpu"}
    model = PPO("MlpPolicy", "CartPole-v1", tensorboard_log=str(tmp_path), seed=1, **options)
    model.learn(192, tb_log_name="run", log_interval=1)
    model.learn(128, tb_log_name="run", log_interval=1, reset_num_timesteps=False)
    (path,) = find_runs(tmp_path)
    run = load_run(path)
    assert run.config is None
    assert len(event_files(path)) == 2
    assert run.curves["rollout/ep_rew_mean"].steps.tolist() == [64, 128, 192, 256, 320]
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    # One by one: TensorBoard takes the tenth file of a second for an older one than the ninth.
    points: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for file in event_files(path):
        events = EventAccumulator(str(file), size_guidance={"scalars": 0})
        events.Reload()
        for tag in events.Tags()["scalars"]:
            points[tag] += [(event.step, event.value) for event in events.Scalars(tag)]
    assert {
        tag: list(zip(curve.steps, curve.values, strict=True)) for tag, curve in run.curves.items()
    } == {tag: sorted(found) for tag, found in points.items()}


def test_runs_are_found_and_named_by_as_much_of_their_paths_as_it_takes(tmp_path: Path) -> None:
    for name in ("first/PPO_1", "second/PPO_1", "second/PPO_2"):
        write(tmp_path / name, [("a", 1, 1, 1)])
    paths = find_runs(tmp_path)
    assert [run.name for run in load_runs(paths)] == ["first/PPO_1", "second/PPO_1", "PPO_2"]
    with pytest.raises(UserError, match="given twice"):
        load_runs([paths[0], paths[0]])
    with pytest.raises(UserError, match="holds some: name them"):
        load_run(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no event file"):
        load_run(tmp_path / "empty")
