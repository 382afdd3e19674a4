"""Whole runs against a simulated server: what is written, repeated, resumed and refused."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
import torch

from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.runs.checkpoints import Checkpoint, write_checkpoint
from query_mutator.runs.directory import RunDirectory
from query_mutator.runs.metrics import metric_of
from query_mutator.servers.simulated import Fault, SimulatedServer, answer_from_questions
from tests import killable
from tests.conftest import SIMULATED_FLAGS, last_checkpoint, same_weights, weights
from tests.killable import ended, until_said
from train_query_mutator import main

SMALL = ["--num-processes", "4", "--num-steps", "4", "--num-env-steps", "48", "--batch-size", "4"]
SMALL += ["--no-cache", "--no-eval", "--eval-interval", "0", "--num-questions", "48"]
SMALL += ["--no-report"]


def train(server: SimulatedServer, run: Path, *flags: str) -> int:
    argv = ["--server", server.url, *SIMULATED_FLAGS, "--run-dir", str(run), *SMALL, *flags]
    return main(argv)


def transitions(run: Path) -> bytes:
    return (run / "transitions.jsonl").read_bytes()


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_a_run_leaves_what_is_needed_to_read_and_repeat_it(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run) == 0

    summary = json.loads((run / "summary.json").read_text())
    assert summary["env_steps"] == 48
    assert summary["updates"] == 3
    assert summary["trained_transitions"] == 48
    assert summary["masked_transitions"] == summary["failed_calls"] == 0
    assert summary["model_calls"] > 0
    assert {"cache_hits", "wall_time_s", "mean_return_first", "mean_return_last"} <= set(summary)

    lines = [json.loads(line) for line in (run / "transitions.jsonl").read_text().splitlines()]
    assert [(line["step"], line["env"]) for line in lines] == [
        (step, env) for step in range(12) for env in range(4)
    ]
    for line in lines:
        assert {"operator", "query", "rewritten_query", "answer", "reward", "terms"} <= set(line)
        assert line["failed"] is False

    logged = scalars(run)
    assert [step for step, _ in logged["Reward/mean_return"]] == [16, 32, 48]
    assert all(metric_of(tag) for tag in logged), "a metric that docs/metrics.md does not explain"
    for tag in (
        "Training/loss", "Gradients/norm_before_clip", "RL/value_mean",
        "Performance/transitions_per_second", "Performance/learner_percentage_training",
        "Performance/calls_per_second", "Time/target", "Time/mutation", "Time/learning",
    ):  # fmt: skip
        assert tag in logged
    assert (run / "learning_curve.png").stat().st_size > 10_000
    assert not (run / "report.html").exists(), "the flags ask for none"

    shown = capsys.readouterr()
    assert f"server: the ollama server at {server.url}" in shown.err
    assert "mean return by environment steps" in shown.out
    assert "mutate_query.py --run" in shown.out


@pytest.mark.usefixtures("embeds_anew")
def test_a_run_is_repeated_from_its_own_config(server: SimulatedServer, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert train(server, first, "--lr", "0.005", "--num-questions", "20") == 0
    assert main(["--config", str(first / "config.json"), "--run-dir", str(second)]) == 0
    assert same_weights(first, second)
    assert transitions(first) == transitions(second)


@pytest.mark.usefixtures("embeds_anew")
def test_sixteen_environments_on_eight_slots_learn_the_same_as_one_call_at_a_time(
    tmp_path: Path,
) -> None:
    flags = ["--num-processes", "16", "--num-steps", "2", "--num-env-steps", "64"]
    flags += ["--max-rewrites", "2", "--batch-size", "8"]
    answer = answer_from_questions(DEFAULT_FILE)
    batched, unbatched = tmp_path / "batched", tmp_path / "unbatched"
    for run, more, limit in ((batched, [], 8), (unbatched, ["--no-batching"], 1)):
        with SimulatedServer(slots=8, mean_latency_s=0.005, sigma=1.0, answer=answer) as server:
            assert train(server, run, *flags, *more) == 0
            assert server.stats.max_in_flight <= limit
            assert (server.stats.max_in_flight > 1) == (limit > 1)
    assert transitions(batched) == transitions(unbatched)
    assert same_weights(batched, unbatched)


def test_another_seed_is_another_run(server: SimulatedServer, tmp_path: Path) -> None:
    train(server, tmp_path / "a", "--seed", "1")
    train(server, tmp_path / "b", "--seed", "2")
    assert not same_weights(tmp_path / "a", tmp_path / "b")


def test_failed_transitions_are_logged_and_masked(tmp_path: Path) -> None:
    with SimulatedServer() as server:
        server.set_faults(Fault("bad_request", model="qwen2.5:3b", calls=tuple(range(2, 500, 2))))
        run = tmp_path / "run"
        assert train(server, run, "--only-operators", "rephrase,shorten,clean_up") == 0
    summary = json.loads((run / "summary.json").read_text())
    lines = [json.loads(line) for line in (run / "transitions.jsonl").read_text().splitlines()]
    failed = [line for line in lines if line["failed"]]
    assert len(failed) == summary["masked_transitions"] > 0
    assert summary["trained_transitions"] + summary["masked_transitions"] == 48
    assert all(line["reward"] == 0 and line["failure"] for line in failed)
    assert all(line["rewritten_query"] == line["query"] for line in failed)


def test_the_last_rollout_is_cut_to_the_steps_asked_for(
    server: SimulatedServer, tmp_path: Path
) -> None:
    assert train(server, tmp_path / "run", "--num-env-steps", "40") == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["env_steps"] == 40
    steps = scalars(tmp_path / "run")["Training/optimizer_steps"]
    assert steps == [(16, 32), (32, 32), (40, 16)], "half a rollout is half the mini-batches"


def start_run(server: SimulatedServer, run: Path, *flags: str) -> ForkServerProcess:
    """A run in a process of its own, which says everything in a file beside the run."""
    argv = ["--server", server.url, *SIMULATED_FLAGS, "--run-dir", str(run), *SMALL, *flags]
    return killable.forked(killable.command, main, argv, log_of(run))


def log_of(run: Path) -> Path:
    return run.with_suffix(".log")


def interrupt(process: ForkServerProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)


def test_ctrl_c_saves_and_a_resumed_run_equals_one_that_was_not_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--max-rewrites", "2", "--num-env-steps", "96", "--save-interval", "50"]
    answer = answer_from_questions(DEFAULT_FILE)
    with SimulatedServer(answer=answer) as server:
        assert train(server, tmp_path / "whole", *flags) == 0
        calls = server.stats.generation_calls
    with SimulatedServer(answer=answer) as server:
        # However late the signal comes, the run has not ended.
        server.set_faults(Fault("hang", calls=range(calls * 2 // 3, 10_000)))
        process = start_run(server, tmp_path / "parts", *flags)
        until_said("update 2/6", log_of(tmp_path / "parts"), process)
        interrupt(process)
        assert ended(process) == 130
        errors = log_of(tmp_path / "parts").read_text()
        assert "Traceback" not in errors
        steps = last_checkpoint(tmp_path / "parts").state["counts"]["env_steps"]
        assert f"interrupted; saved at step {steps}, the last whole rollout" in errors
        assert f"--resume --run-dir {tmp_path / 'parts'}" in errors
    with SimulatedServer(answer=answer) as server:
        resume = ["--resume", "--run-dir", str(tmp_path / "parts"), "--server", server.url]
        assert main(resume) == 0
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert transitions(whole) == transitions(parts)
    assert same_weights(whole, parts)
    summaries = [json.loads((run / "summary.json").read_text()) for run in (whole, parts)]
    assert summaries[0]["mean_return_last"] == summaries[1]["mean_return_last"]
    curves = [scalars(run)["Reward/mean_return"] for run in (whole, parts)]
    assert curves[0] == curves[1]


def test_a_server_that_dies_ends_the_run_with_its_work_saved(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with SimulatedServer(mean_latency_s=0.02) as server:
        flags = ["--retries", "0", "--num-env-steps", "1e4", "--max-outage", "1"]
        process = start_run(server, run, *flags)
        until_said("update 2/", log_of(run), process)
        server.crash()
        assert ended(process) == 1
    errors = log_of(run).read_text()
    assert "the model server stopped answering" in errors
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert weights(run)


def test_ctrl_c_while_a_run_waits_for_its_server_saves_and_stops(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with SimulatedServer(mean_latency_s=0.02) as server:
        process = start_run(server, run, "--num-env-steps", "1e4")
        until_said("update 2/", log_of(run), process)
        server.crash()
        until_said("does not answer", log_of(run), process)
        interrupt(process)
        assert ended(process) == 130
    errors = log_of(run).read_text()
    assert f"--resume --run-dir {run}" in errors
    assert "Traceback" not in errors
    assert last_checkpoint(run).state["counts"]["env_steps"] >= 32


def test_a_server_that_dies_is_noticed_when_all_first_answers_are_remembered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SimulatedServer() as server:
        # Four first answers and both warm-ups succeed, all else fails.
        server.set_faults(Fault("runner_crash", calls=tuple(range(7, 5000))))
        flags = ["--retries", "0", "--num-questions", "4", "--num-env-steps", "4000"]
        flags += ["--max-outage", "1"]
        assert train(server, tmp_path / "run", *flags) == 1
    assert "the model server stopped answering" in capsys.readouterr().err


def test_a_run_that_left_the_models_open_is_repeated_and_resumed_on_the_same_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with SimulatedServer(models=("one:1b",)) as server:
        assert main(["--server", server.url, "--run-dir", str(run), *SMALL]) == 0
    with SimulatedServer(models=("other:9b",)) as server:
        resume = ["--resume", "--run-dir", str(run), "--num-env-steps", "64"]
        assert main([*resume, "--server", server.url]) == 2
        assert "no model 'one:1b'" in capsys.readouterr().err
    assert json.loads((run / "config.json").read_text())["settings"]["target_model"] == "one:1b"


def test_an_objective_that_breaks_in_mid_run_loses_nothing(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "seen = []\n"
        "def f(batch):\n"
        "    seen.extend(batch.answers)\n"
        "    return [float('nan') if len(seen) > 60 else 1.0 for _ in batch.answers]\n"
    )
    run = tmp_path / "run"
    assert train(server, run, "--objective", f"{file}:f", "--save-interval", "50") == 2
    said = capsys.readouterr().err
    assert "mine.py:f gave nan, not a number" in said
    assert "--resume" in said
    assert 0 < json.loads((run / "summary.json").read_text())["env_steps"] < 48


def test_a_directory_is_written_by_one_run_at_a_time(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run) == 0
    other = RunDirectory(run)
    other.take()
    assert main(["--resume", "--run-dir", str(run), "--server", server.url]) == 2
    assert "another process is writing" in capsys.readouterr().err
    other.release()
    assert main(["--resume", "--run-dir", str(run), "--server", server.url]) == 0


def test_an_extended_run_goes_on_with_what_it_was_extended_to(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--num-env-steps", "40") == 0
    assert "update 3/3 " in capsys.readouterr().err
    resume = ["--resume", "--run-dir", str(run), "--server", server.url]
    assert main([*resume, "--num-env-steps", "64"]) == 0
    assert json.loads((run / "config.json").read_text())["settings"]["num_env_steps"] == 64
    said = capsys.readouterr().err
    assert "update 4/5 " in said
    assert "update 5/5 " in said


def change_checkpoint(run: Path, change: Callable[[Checkpoint], None]) -> None:
    checkpoint = last_checkpoint(run)
    change(checkpoint)
    write_checkpoint(RunDirectory(run).checkpoints.paths()[-1], checkpoint)


def test_an_update_that_diverges_ends_the_run_in_a_line_and_keeps_the_policy_before_it(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--hidden-size", "8") == 0
    before = weights(run)
    change_checkpoint(run, lambda content: content.state.update(learning_rate=1e30))
    capsys.readouterr()
    resume = ["--resume", "--run-dir", str(run), "--server", server.url]
    assert main([*resume, "--num-env-steps", "96"]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(said) == 1
    assert "infinite or not a number; start a new run with a lower --lr" in said[0]
    assert all(torch.equal(before[name], value) for name, value in weights(run).items())


def spoil(tensor: torch.Tensor) -> None:
    tensor.fill_(float("nan"))


def test_a_policy_without_finite_probabilities_ends_the_run_in_a_line(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run) == 0
    change_checkpoint(run, lambda content: spoil(content.tensors["policy.actor.0.bias"]))
    resume = ["--resume", "--run-dir", str(run), "--server", server.url]
    assert main([*resume, "--num-env-steps", "64"]) == 1
    assert "error: what the policy gives is infinite or not a number" in capsys.readouterr().err


def test_resuming_what_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--resume", "--run-dir", str(tmp_path)]) == 2
    assert "holds no run to go on with" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_resuming_with_another_learning_rate_is_refused_and_named(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train(server, run) == 0
    resume = ["--resume", "--run-dir", str(run), "--server", server.url]
    assert main([*resume, "--lr", "0.5"]) == 2
    assert "--lr 0.5" in capsys.readouterr().err
    assert main([*resume, "--num-env-steps", "64", "--batch-size", "2"]) == 0
    assert json.loads((run / "summary.json").read_text())["env_steps"] == 64


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--target-model", "mistral"], "no model 'mistral'"),
        (["--server", "http://127.0.0.1:9"], "no model server answers"),
        (["--server", "nonsense://"], "is not a server"),
        (["--dataset", "nowhere.jsonl"], "No such file"),
        (["--dataset", "{tmp}/bad.jsonl"], "line 1: not valid JSON"),
        (["--run-dir", "{tmp}/bad.jsonl"], "is a file, not a directory"),
        (["--run-dir", "{tmp}/bad.jsonl/run"], "cannot write to"),
        (["--run-dir", "{tmp}/full"], "is not empty"),
        (["--run-dir", "/proc/run"], "/proc/run"),
        (["--batch-size", "0"], "--batch-size must be at least 1"),
        (["--only-operators", "qa,nothing"], "no operator 'nothing'"),
        (["--operators", "nowhere.toml"], "cannot read the operator file"),
        (["--objective", "nothing"], "no objective 'nothing'"),
        (["--embedding-model", "nothing"], "no embedding model 'nothing'"),
        (["--bogus"], "unrecognized arguments"),
    ],
)  # fmt: skip
def test_bad_input_is_one_or_two_lines_exit_code_2_and_nothing_left(
    flags: list[str],
    message: str,
    server: SimulatedServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.jsonl").write_text("{")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("")
    before = sorted(tmp_path.rglob("*"))
    flags = [flag.replace("{tmp}", str(tmp_path)) for flag in flags]
    argv = ["--server", server.url, *SIMULATED_FLAGS, "--run-dir", str(tmp_path / "run")]
    assert main([*argv, *SMALL, *flags]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    said = [line for line in said if not line.startswith(("server:", "hint:"))]
    assert message in "\n".join(said)
    assert 1 <= len(said) <= 2
    assert said[0].startswith("error: ")
    assert sorted(tmp_path.rglob("*")) == before
