"""The command lines of the guides that people come with, run as they are written there.

`lazarus` is `python -m batching` or `query-mutator`; nothing else of a line changes. The data are
rows of an instruction and a response; the tokenizer is a small one that lies in the hub's local
cache under the name of gpt2. Each launcher works through all lines, in their order, in a directory
of its own. The lines that train are in `test_documents_training.py`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import batching
from batching.generation import BatchReader, LengthCache
from batching.streaming import ReplayBuffer
from batching.streaming.puzzle_server import PuzzleServer
from query_mutator.data import load_questions
from tests.test_batching_tokenizers import hugging_face

ROOT = Path(__file__).resolve().parent.parent
LAUNCHERS = {
    "python -m batching": [sys.executable, "-m", "batching"],
    "query-mutator": [sys.executable, "-m", "query_mutator"],
}
DATA = {
    "lazarus data lengths build -d train.jsonl -t gpt2 -o lengths.jsonl": "400 lengths, ",
    "lazarus data lengths stats -c lengths.jsonl": "samples    400",
    "lazarus data batchplan build -l lengths.jsonl -e 3 -b 4096 -o batch_plan/": "3 epochs, ",
    "lazarus data batchplan info -p batch_plan/": "4,096 tokens a batch",
    "lazarus data batchplan verify -p batch_plan/ -l lengths.jsonl": "matches lengths.jsonl",
    "lazarus data batchplan shard -p batch_plan/ -w 4 -o shards/": "4 ranks, each with ",
    "lazarus data batching histogram -c lengths.jsonl --bins 20": "400 samples",
    "lazarus data batching analyze -c lengths.jsonl --bucket-edges 128,256,512": "packing",
    "lazarus data batching suggest -c lengths.jsonl --num-buckets 4 --goal waste": "--bucket-edges",
    "lazarus data batch generate -p batch_plan/ -d train.jsonl -t gpt2 -o batches/": "written)",
}
GYM = {
    "lazarus gym run -t gpt2 --mock --num-episodes 10": "10 episodes, 10 solved, ",
    "lazarus gym run -t gpt2 --host localhost --port 8023": "10 episodes, 10 solved, ",
    "lazarus gym run -t gpt2 --mock --output buffer.json": "buffer.json: ",
    "lazarus gym info": "in this process",
}
LINES = DATA | GYM
"""Each line, and what its output says."""
SERVED = "--port 8023"
COMMIT = "0123456789" * 4


def write_data(folder: Path) -> None:
    """`train.jsonl`: instructions and responses."""
    questions = [one for one in load_questions() if one.reference][:400]
    rows = [{"instruction": one.question, "response": one.reference} for one in questions]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def local_hub(folder: Path) -> Path:
    """A home of the hub's cache, in which a tokenizer lies as the hub's library leaves it."""
    model = folder / "hub" / "models--gpt2"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text(COMMIT)
    (model / "snapshots").mkdir()
    hugging_face(model / "snapshots" / COMMIT, eos_token="</s>")
    return folder


def process(
    command: list[str], folder: Path, home: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        **more,
    }
    environment.pop("HF_HUB_CACHE", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@contextlib.contextmanager
def puzzle_server() -> Iterator[PuzzleServer]:
    """The port is in the line: where another test has it at the moment, it is waited for."""
    for _ in range(600):
        try:
            server = PuzzleServer(8023)
            break
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            time.sleep(0.1)
    with server:
        yield server


@pytest.fixture(scope="module", params=LAUNCHERS)
def worked_through(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, subprocess.CompletedProcess[str]]]:
    """The directory in which a launcher has run all lines, and what came of each."""
    folder = tmp_path_factory.mktemp("lines")
    home = local_hub(tmp_path_factory.mktemp("home"))
    write_data(folder)
    done = {}
    for line in LINES:
        name, *words = shlex.split(line)
        assert name == "lazarus"
        with puzzle_server() if SERVED in line else contextlib.nullcontext():
            done[line] = process([*LAUNCHERS[request.param], *words], folder, home)
    return folder, done


@pytest.mark.parametrize("line", LINES)
def test_a_line_runs_as_it_is_written(
    worked_through: tuple[Path, dict[str, subprocess.CompletedProcess[str]]], line: str
) -> None:
    done = worked_through[1][line]
    assert (done.returncode, done.stderr) == (0, "")
    assert LINES[line] in done.stdout


def test_what_the_lines_leave_fits_together(
    worked_through: tuple[Path, dict[str, subprocess.CompletedProcess[str]]],
) -> None:
    folder = worked_through[0]
    lengths = LengthCache.open(folder / "lengths.jsonl", read_only=True).lengths()
    plan = batching.BatchPlan.load(folder / "batch_plan")
    learned, tokens = 0, 0
    for batch in BatchReader(folder / "batches", plan).iter_epoch(0):
        assert batch.input_ids.size <= 4096
        learned += int(batch.loss_mask.sum())
        tokens += int((batch.segment_ids >= 0).sum())
    assert tokens == sum(lengths.values())
    assert 0 < learned < tokens, "of the instructions nothing is learned"
    assert sorted(path.name for path in (folder / "shards").iterdir()) == [
        f"rank_{number}" for number in range(4)
    ]
    assert len(ReplayBuffer.load(folder / "buffer.json")) > 10


@pytest.mark.parametrize(
    ("long", "short"),
    [("minimize_waste", "waste"), ("balance_buckets", "balance"), ("minimize_memory", "memory")],
)
def test_a_goal_has_two_names(
    worked_through: tuple[Path, dict[str, subprocess.CompletedProcess[str]]],
    capsys: pytest.CaptureFixture[str],
    long: str,
    short: str,
) -> None:
    from batching.__main__ import main

    told = []
    for goal in (long, short):
        words = ["suggest", "-c", str(worked_through[0] / "lengths.jsonl"), "--goal", goal]
        assert main(words) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert batching.suggest_edges(range(1, 99), 3, long) == batching.suggest_edges(
        range(1, 99), 3, short
    )


def test_a_model_that_is_not_in_the_cache_is_told_without_a_network(tmp_path: Path) -> None:
    write_data(tmp_path)
    words = ["data", "lengths", "build", "-d", "train.jsonl", "-t", "gpt2", "-o", "l.jsonl"]
    done = process([*LAUNCHERS["query-mutator"], *words], tmp_path, tmp_path / "home")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "error: no tokenizer 'gpt2': gpt2 is not in the local cache, and no hub answers"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "l.jsonl").exists()


class Hub(ThreadingHTTPServer):
    """A hub on loopback that has one model: gpt2, with a tokenizer and with weights."""

    def __init__(self, folder: Path) -> None:
        self.folder = hugging_face(folder, eos_token="</s>")
        (folder / "model.safetensors").write_bytes(b"weights")
        self.given: list[str] = []
        super().__init__(("127.0.0.1", 0), HubRequest)


class HubRequest(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        name = path.rpartition("/")[2]
        body, status = b"{}", 200
        files: list[dict[str, object]]
        if path.startswith("/api/models/gpt2/tree/"):
            files = [
                {"type": "file", "path": one.name, "size": one.stat().st_size, "oid": "0"}
                for one in self.server.folder.iterdir()
            ]
            body = json.dumps(files).encode()
        elif path.startswith("/api/models/gpt2"):
            files = [{"rfilename": one.name} for one in self.server.folder.iterdir()]
            model = {"id": "gpt2", "_id": "0", "sha": COMMIT, "siblings": files, "private": False}
            body = json.dumps(model).encode()
        elif path.startswith(f"/gpt2/resolve/{COMMIT}/") and (self.server.folder / name).exists():
            body = (self.server.folder / name).read_bytes()
            self.server.given += [name] * with_body
        elif path != "/":
            status = 404
        self.send_response(status)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_tokenizer_is_downloaded_once_and_without_the_weights(tmp_path: Path) -> None:
    write_data(tmp_path)
    words = ["data", "lengths", "build", "-d", "train.jsonl", "-t", "gpt2", "-o"]
    command = [*LAUNCHERS["query-mutator"], *words]
    home = tmp_path / "home"
    with Hub(tmp_path / "gpt2_on_the_hub") as hub:
        serving = threading.Thread(target=hub.serve_forever, daemon=True)
        serving.start()
        where = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HUB_OFFLINE": "0"}
        done = process([*command, "first.jsonl"], tmp_path, home, **where)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(hub.given) == ["tokenizer.json", "tokenizer_config.json"]
        hub.given.clear()
        unknown = [*command[:-2], "no/such-model", "-o", "none.jsonl"]
        done = process(unknown, tmp_path, home, **where)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: no tokenizer 'no/such-model': the hub does not give")
        assert done.stderr.count("\n") == 1
        hub.shutdown()
        serving.join()
    done = process([*command, "second.jsonl"], tmp_path, home, **where)
    assert (done.returncode, done.stderr) == (0, ""), "the hub has gone, and is not needed"
    first, second = ((tmp_path / f"{one}.jsonl").read_bytes() for one in ("first", "second"))
    assert first == second
    assert not hub.given
    done = process(unknown, tmp_path, home, **where)
    assert "is not in the local cache, and no hub answers" in done.stderr


def test_a_buffer_that_is_there_is_added_to_or_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from batching.__main__ import main

    monkeypatch.chdir(tmp_path)
    play = ["gym", "run", "--mock", "--num-episodes", "2", "--output", "buffer.json"]
    assert main(play) == 0
    once = len(ReplayBuffer.load("buffer.json"))
    assert main([*play, "--first-episode", "2"]) == 0
    assert len(ReplayBuffer.load("buffer.json")) > once
    assert main([*play, "--overwrite"]) == 0
    assert len(ReplayBuffer.load("buffer.json")) == once
    capsys.readouterr()
    for words, told in (
        ([*play, "--buffer", "other.json"], "leave one out"),
        ([*play, "--port", "8023"], "--mock plays in this process"),
    ):
        assert main(words) == 2
        assert told in capsys.readouterr().err


def test_the_names_of_the_guides_are_exported() -> None:
    assert batching.BufferEvictionPolicy("fifo") is batching.BufferEvictionPolicy.FIFO
    buffer = batching.ReplayBuffer(2, batching.BufferEvictionPolicy.PRIORITY)
    assert buffer.eviction is batching.BufferEvictionPolicy.PRIORITY
    assert set(batching.__all__) <= set(vars(batching))
