"""The lines of the guides that train, run as they are written there, and what the trainer saw.

They follow the lines that make `batch_plan/` (`test_documents_lines.py`), with `query-mutator` for
`lazarus`: batching knows nothing of training. `model` is a Llama of two layers that has the
tokenizer called gpt2.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from batching import BatchPlan
from batching.generation import LengthCache
from query_mutator import cli
from query_mutator.base.adapter_files import PEFT_DIRECTORY
from query_mutator.runs.directory import CONFIG, SUMMARY, timed_directory
from query_mutator.tuning.apart import packing_of
from query_mutator.tuning.base_model import load_base_model
from query_mutator.tuning.material import Material, load_material
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.settings import build_parser, parse_settings
from tests.test_documents_lines import (
    DATA,
    LAUNCHERS,
    local_hub,
    process,
    puzzle_server,
    write_data,
)
from tests.tiny_models import make_llama

BEFORE = [line for line in DATA if "lengths build" in line or "batchplan build" in line]
PLANNED = "lazarus train sft --model model --data train.jsonl --batchplan batch_plan/"
BUCKETS = (
    "lazarus train sft --model model --data train.jsonl --bucket-edges 128,256,512 "
    "--token-budget 4096"
)
PACKED = "lazarus train sft --model model --data train.jsonl --pack --pack-max-len 2048"
ONLINE = (
    "lazarus train sft --model model --data train.jsonl --online --gym-host localhost "
    "--gym-port 8023"
)
LINES = {
    PLANNED: "400 samples (0 held out)",
    BUCKETS: "380 samples (20 held out)",
    PACKED: "380 samples (20 held out)",
    ONLINE: "then what comes",
}
"""Each line, and what its output says."""
PUZZLES = 100


@dataclass(frozen=True)
class Done:
    """What came of a line."""

    process: subprocess.CompletedProcess[str]
    output: Path
    """The directory that it made."""
    received: tuple[bytes, ...] = ()
    """What the puzzle server got."""

    def read(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.output / name).read_text())
        return found


Lines = tuple[Path, dict[str, Done]]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The directory in which the lines were run, and what came of each."""
    folder = tmp_path_factory.mktemp("lines")
    home = local_hub(tmp_path_factory.mktemp("home"))
    write_data(folder)
    make_llama(folder / "model", chat=False, vocab_size=300)
    (tokenizer,) = (home / "hub" / "models--gpt2" / "snapshots").iterdir()
    shutil.copytree(tokenizer, folder / "model", dirs_exist_ok=True)
    launcher = LAUNCHERS["query-mutator"]
    for line in BEFORE:
        assert process([*launcher, *shlex.split(line)[1:]], folder, home).returncode == 0
    done = {}
    before: set[Path] = set()
    for line in LINES:
        with puzzle_server() if line is ONLINE else contextlib.nullcontext() as server:
            ended = process([*launcher, *shlex.split(line)[1:]], folder, home)
        received = tuple(server.received) if server else ()
        made = set((folder / "rewriters").glob("*")) - before
        before |= made
        done[line] = Done(ended, made.pop() if len(made) == 1 else folder, received)
    return folder, done


def seen_by_the_trainer(line: str) -> Material:
    """What a line gives the trainer, in the directory of the lines."""
    settings = parse_settings(build_parser("train", None), shlex.split(line)[3:])
    base = load_base_model(settings.model, torch.float32)
    return load_material(settings, PromptWriter(base.tokenizer), packing_of(base))


@pytest.mark.parametrize("line", LINES)
def test_a_line_trains_as_it_is_written(lines: Lines, line: str) -> None:
    done = lines[1][line]
    assert done.process.returncode == 0, done.process.stderr
    assert LINES[line] in done.process.stdout
    assert str(done.output.relative_to(lines[0]) / PEFT_DIRECTORY) in done.process.stdout
    told = done.process.stderr.splitlines()
    assert all(line.startswith("step ") for line in told if line), "looks, and no warning"
    assert (done.output / PEFT_DIRECTORY / "adapter_model.safetensors").is_file()
    assert done.read(SUMMARY)["finished"]
    assert done.read(SUMMARY)["looks"][-1]["loss"] < done.read(SUMMARY)["looks"][0]["loss"]


def test_each_line_has_a_directory_of_its_own(lines: Lines) -> None:
    folder, done = lines
    made = {one.output for one in done.values()}
    assert made == set((folder / "rewriters").iterdir())
    assert len(made) == len(LINES)


def test_the_batches_of_a_plan_are_those_that_are_trained(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, done = lines
    monkeypatch.chdir(folder)
    plan, config = BatchPlan.load(Path("batch_plan")), done[PLANNED].read(CONFIG)
    material = seen_by_the_trainer(PLANNED)
    assert material.digest() == config["data_digest"]
    assert [epoch.plan.digest for epoch in material.epochs] == [e.digest for e in plan.epochs]
    assert config["steps"] == done[PLANNED].read(SUMMARY)["steps"] == plan.num_batches
    tokens = sum(LengthCache.open(Path("lengths.jsonl"), read_only=True).lengths().values())
    assert done[PLANNED].read(SUMMARY)["tokens"] == 3 * tokens


def test_buckets_hold_samples_of_like_length_within_the_budget(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lines[0])
    material = seen_by_the_trainer(BUCKETS)
    config = lines[1][BUCKETS].read(CONFIG)
    assert (material.digest(), material.num_batches) == (config["data_digest"], config["steps"])
    buckets = set()
    for epoch in material.epochs:
        for batch in epoch.plan:
            sizes = [len(epoch.samples[name]) for name in batch.sample_ids]
            assert max(batch.rows, default=1) == 1, "each sample has a row of its own"
            assert max(sizes) * len(sizes) <= 4096
            (bucket,) = {sum(size > edge for edge in (128, 256, 512)) for size in sizes}
            buckets.add(bucket)
    assert len(buckets) > 1
    others = [BUCKETS.replace("128,256,512", "64,96"), BUCKETS.replace("4096", "2048")]
    digests = {seen_by_the_trainer(other).digest() for other in (*others, f"{BUCKETS} --pack")}
    assert len(digests | {config["data_digest"]}) == 4, "each flag counts"


def test_packed_rows_hold_several_samples_and_keep_their_length(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lines[0])
    material = seen_by_the_trainer(PACKED)
    config = lines[1][PACKED].read(CONFIG)
    assert (material.digest(), material.num_batches) == (config["data_digest"], config["steps"])
    assert config["packing"] == "by sample"
    for epoch in material.epochs:
        for batch in epoch.plan:
            rows = list(batch.row_entries())
            assert all(sum(length for _, _, length in row) <= 2048 for row in rows)
        assert any(max(batch.rows) > 1 for batch in epoch.plan)
        assert epoch.plan.metrics.efficiency > 0.9
    shorter = seen_by_the_trainer(PACKED.replace("2048", "512"))
    longest = {max(b.max_length for e in m.epochs for b in e.plan) for m in (material, shorter)}
    assert min(longest) <= 512 < max(longest) <= 2048


def test_puzzles_are_played_on_the_server_and_learned_after_the_data(lines: Lines) -> None:
    folder, done = lines
    games = {line for line in done[ONLINE].received if b" easy " in line}
    assert len(games) == PUZZLES, "each with a seed of its own"
    lengths = LengthCache.open(folder / "lengths.jsonl", read_only=True).lengths()
    config, summary = (done[ONLINE].read(name) for name in (CONFIG, SUMMARY))
    assert (config["samples"], config["steps"]) == (380, 0), "nobody knew what would come"
    assert summary["tokens"] > 2 * sum(sorted(lengths.values())[:380]), "and each is seen again"
    assert summary["looks"][-1]["step"] == summary["steps"]


@pytest.fixture
def few(lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the model and a few rows, in which commands are run."""
    (tmp_path / "model").symlink_to(lines[0] / "model")
    rows = (lines[0] / "train.jsonl").read_text().splitlines(keepends=True)[:12]
    (tmp_path / "train.jsonl").write_text("".join(rows))
    (tmp_path / "nothing.jsonl").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("no model")
    shutil.copytree(lines[0] / "model", tmp_path / "no_weights")
    (tmp_path / "no_weights" / "model.safetensors").unlink()
    shutil.copytree(lines[0] / "model", tmp_path / "torn")
    (tmp_path / "torn" / "model.safetensors").write_bytes(b"torn")
    shutil.copytree(lines[0] / "model", tmp_path / "no_kind")
    (tmp_path / "no_kind" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


@pytest.mark.parametrize(
    ("model", "data", "told"),
    [
        ("model", "missing.jsonl", "cannot read the data set missing.jsonl"),
        ("model", "nothing.jsonl", "nothing.jsonl holds no texts"),
        ("folder", "train.jsonl", "folder holds no model"),
        ("file", "train.jsonl", "file is a file and no GGUF"),
        ("no_weights", "train.jsonl", "cannot load the model no_weights"),
        ("torn", "train.jsonl", "cannot load the model torn"),
        ("no_kind", "train.jsonl", "cannot load the model no_kind"),
    ],
)
def test_what_is_no_data_and_no_model_is_told_in_a_line(
    few: Path, capfd: pytest.CaptureFixture[str], model: str, data: str, told: str
) -> None:
    before = sorted(few.iterdir())
    assert cli.main(["train", "sft", "--model", model, "--data", data]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert told in err
    assert sorted(few.iterdir()) == before


def test_a_plan_of_another_tokenizer_is_refused_before_anything_is_made(
    few: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ["data", "lengths", "build", "-d", "train.jsonl", "-t", "bytes", "-o", "l.jsonl"]
    assert cli.main(build) == 0
    assert cli.main(["data", "batchplan", "build", "-l", "l.jsonl", "-b", "4096", "-o", "p"]) == 0
    capsys.readouterr()
    words = ["train", "sft", "--model", "model", "--data", "train.jsonl", "--batchplan", "p"]
    assert cli.main(words) == 2
    assert "with -t model, and build the plan again" in capsys.readouterr().err
    assert not (few / "rewriters").exists()


def test_trainings_that_begin_within_a_second_have_places_of_their_own(few: Path) -> None:
    words = ["train", "sft", "--model", "model", "--data", "train.jsonl", "--epochs", "1"]
    for _ in range(2):
        assert cli.main(words) == 0
    assert len(list((few / "rewriters").glob(f"*/{SUMMARY}"))) == 2
    for _ in range(100):
        timed_directory(few / "others").mkdir(parents=True)


def test_what_is_resumed_has_to_be_named(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "sft", "--resume"]) == 2
    assert "--output: name it" in capsys.readouterr().err


def test_batching_says_who_trains(capsys: pytest.CaptureFixture[str]) -> None:
    from batching.__main__ import main

    assert main(shlex.split(PACKED)[1:]) == 2
    assert "query-mutator train sft" in capsys.readouterr().err


def test_help_on_training_imports_nothing_heavy() -> None:
    script = (
        "import sys; from query_mutator.cli import main\n"
        "try: main(['train', 'sft', '--help'])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'transformers', 'peft', 'numpy', 'batching'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = process([sys.executable, "-c", script], Path.cwd(), Path.cwd())
    assert (done.returncode, done.stderr) == (0, "")
    assert "--batchplan" in done.stdout
