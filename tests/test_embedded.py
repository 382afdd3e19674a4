"""The real embedded model: it answers, it learns, and it never outlives its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mutate_query import main as mutate
from ollama_utils import batch_mutate_queries, batch_query_target_model
from query_mutator.models.session import open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.embedded import MODEL_NAME, start_embedded
from tests.conftest import FEW_QUESTIONS, weights
from tests.waiting import ENOUGH_S, wait_until
from train_query_mutator import main

pytestmark = pytest.mark.slow


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not alive(pid), "it still runs")


def test_it_answers_and_rewrites() -> None:
    with open_models(
        ModelSettings("embedded", slots=2, num_ctx=1024, max_tokens_answer=24)
    ) as models:
        assert models.connection.embedded is not None
        pid = models.connection.embedded.process.pid
        answers = batch_query_target_model(
            ["Question: What is the capital of France?\nAnswer:"], models=models, max_workers=2
        )
        rewrites = batch_mutate_queries(["how much legs has a spider"], "clean_up", models=models)
    assert "Paris" in answers[0].text
    assert rewrites[0].text.endswith("?")
    assert rewrites[0].call is not None
    assert rewrites[0].call.reply.completion_tokens > 0
    wait_until_gone(pid)


def test_it_has_as_many_slots_as_calls_at_once() -> None:
    import requests

    server = start_embedded(slots=3, num_ctx=512)
    try:
        props = requests.get(f"{server.url}/props", timeout=ENOUGH_S).json()
        assert props["total_slots"] == 3
        assert props["default_generation_settings"]["n_ctx"] == 512
        assert server.url.startswith("http://127.0.0.1:")
        listed = requests.get(f"{server.url}/v1/models", timeout=ENOUGH_S).json()["data"]
        assert [model["id"] for model in listed] == [MODEL_NAME]
    finally:
        server.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_when_its_parent_is_killed(number: int) -> None:
    code = (
        "from query_mutator.servers.embedded import MODEL_NAME, start_embedded; import sys, time\n"
        "server = start_embedded(slots=1, num_ctx=512)\n"
        "print(server.process.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(number)
    parent.wait()
    wait_until_gone(pid)


def children_of(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_ctrl_c_in_a_run_leaves_a_checkpoint_and_no_server_behind(tmp_path: Path) -> None:
    command = [sys.executable, "train_query_mutator.py", "--server", "embedded"]
    command += ["--run-dir", str(tmp_path / "run"), "--num-processes", "2", "--num-steps", "2"]
    command += ["--batch-size", "2", "--num-env-steps", "1e6", "--max-tokens-answer", "8"]
    command += ["--max-tokens-mutation", "8", "--num-questions", "8", "--eval-interval", "0"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("update 1/"):
            break
    servers = children_of(process.pid)
    assert servers
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    _, errors = process.communicate(timeout=ENOUGH_S)
    assert process.returncode == 130, errors
    assert weights(tmp_path / "run")
    for pid in servers:
        wait_until_gone(pid)


def test_a_policy_is_trained_on_it_and_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    flags = ["--num-processes", "4", "--num-steps", "2", "--num-env-steps", "16"]
    flags += ["--batch-size", "4", "--max-tokens-answer", "8", "--max-tokens-mutation", "8"]
    flags += ["--dataset", str(FEW_QUESTIONS), "--num-questions", "8"]
    flags += ["--eval-questions", "3", "--eval-sample", "2", "--only-operators", "qa,clean_up"]
    assert main(["--server", "embedded", "--run-dir", str(run), *flags]) == 0
    summary = json.loads((run / "summary.json").read_text())
    assert summary["trained_transitions"] == 16
    assert summary["failed_calls"] == 0
    capsys.readouterr()
    assert mutate(["--run", str(run), "--json", "wat is teh capital of peru"]) == 0
    assert json.loads(capsys.readouterr().out)["answer_before"]
