"""`python -m batching`: each command does what it says, refuses what is wrong, loses nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from batching.generation import ByteTokenizer, LengthCache
from batching.streaming import ReplayBuffer
from batching.streaming.puzzle_server import PuzzleServer
from batching.streaming.sample_files import read_samples
from query_mutator.base.errors import UserError
from tests.batching_commands import ROOT, TEXTS, as_json, files, make_plan, measure, run, signalled
from tests.report_runs import transition

COMMANDS = [
    "lengths build", "lengths stats", "histogram", "analyze", "suggest", "plan build",
    "plan info", "plan verify", "plan shard", "generate", "gym run", "gym info", "trajectories",
]  # fmt: skip
HEAVY = {"torch", "matplotlib", "transformers", "tokenizers", "tqdm"}
HOSTILE = "\x1b[2J\u202e\x07"


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("examples").symlink_to(ROOT / "examples")


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as left:
        run(*command.split(), "--help")
    assert left.value.code == 0
    return capsys.readouterr().out


def test_the_example_under_every_help_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("runs/NAME").mkdir(parents=True)
    lines = [json.dumps(transition(number)) for number in range(40)]
    Path("runs/NAME/transitions.jsonl").write_text("\n".join(lines) + "\n")
    for command in COMMANDS:
        example = help_of(command, capsys).split("example:\n")[1]
        words = shlex.split(example)
        assert words[:3] == ["python", "-m", "batching"], command
        assert words[3:].count("-o") <= 1
        assert " ".join(words[3:]).startswith(command), "the example is of this command"
        assert run(*words[3:]) == 0, example
        assert capsys.readouterr().err == ""


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom batching.__main__ import main\n"
        "try: main(['plan', 'build', '--help'])\nexcept SystemExit: pass\n"
        f"print(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.endswith("\n[]\n")
    assert "batches:" in done.stdout, "flags are in groups"


def test_as_a_process_a_wrong_flag_is_one_line_and_exit_code_2() -> None:
    command = [sys.executable, "-m", "batching", "plan", "build", "--bugdet", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def files_of_all_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with data, lengths and a plan, some of them damaged, and something else."""
    folder = tmp_path_factory.mktemp("kinds")
    with contextlib.chdir(folder):
        Path("texts.jsonl").write_bytes(TEXTS.read_bytes())
        Path("empty.jsonl").touch()
        Path("torn.jsonl").write_text('{"text": "a"}\n{"text": "b')
        header = '{"tokenizer_hash": "x", "version": 1}\n'
        entry = '{"sample_id": "a", "tokenizer_hash": "x", "length": %s}\n'
        Path("header.jsonl").write_text(header)
        Path("damaged.jsonl").write_text(header + "rubbish\n" + entry % 3)
        Path("empty_text.jsonl").write_text(header + entry % 0)
        Path("endless.jsonl").write_text(header + entry % 10**12)
        Path("folder").mkdir()
        Path("folder/mine").write_text("mine")
        make_plan(output="plan")
    return folder


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "required: command"),
        ("plan", "required: subcommand"),
        ("fly", "invalid choice: 'fly'"),
        ("lengths build -d nope.jsonl -t bytes -o l.jsonl", "cannot read the data set nope.jsonl"),
        ("lengths build -d texts.jsonl -t nope -o l.jsonl", "no tokenizer 'nope'"),
        ("lengths build -d empty.jsonl -t bytes -o l.jsonl", "empty.jsonl holds no texts"),
        ("lengths build -d torn.jsonl -t bytes -o l.jsonl", "torn.jsonl, line 2: not valid JSON"),
        ("lengths build -d texts.jsonl -t bytes -o texts.jsonl", "holds no lengths"),
        ("lengths build -d texts.jsonl -t bytes -o texts.jsonl --overwrite", "holds no lengths"),
        ("lengths build -d texts.jsonl -t bytes -o folder", "holds no lengths"),
        ("lengths stats -c nope", "there is no nope"),
        ("lengths stats -c texts.jsonl", "texts.jsonl holds no lengths"),
        ("lengths stats -c header.jsonl", "header.jsonl holds no lengths"),
        ("lengths stats -c damaged.jsonl", "line 2 is damaged"),
        ("plan build -l lengths.jsonl -o p --bucket-edges 5,3", "ascending whole numbers"),
        ("plan build -l lengths.jsonl -o p --bucket-edges 9 --overflow-max 9", "above the last"),
        ("plan build -l lengths.jsonl -o p --predictable --throughput", "not allowed with"),
        ("plan build -l lengths.jsonl -o p -b 0", "from 1 on"),
        ("plan build -l lengths.jsonl -o p -b 64", "--on-overflow truncate, split or skip"),
        ("plan build -l empty_text.jsonl -o p", "all are skipped"),
        ("plan build -l endless.jsonl -o p --on-overflow split", "more than 134,217,728 parts"),
        ("plan build -l lengths.jsonl -o folder", "holds no plan"),
        ("plan build -l lengths.jsonl -o texts.jsonl", "is a file"),
        ("plan info -p folder", "cannot read plan"),
        ("plan verify -p folder -l lengths.jsonl", "holds no plan"),
        ("plan shard -p nope -w 2 -o s", "cannot read plan"),
        ("plan shard -p plan -w 0 -o s", "from 1 on"),
        ("plan shard -p plan -w 2 -o plan", "something else than shards"),
        ("generate -p nope -d texts.jsonl -t bytes -o b", "cannot read plan"),
        ("generate -p plan -d texts.jsonl -t bytes -o b --resume", "no batches to go on with"),
        ("generate -p plan -d texts.jsonl -t bytes -o folder", "holds no batches"),
        ("histogram -c lengths.jsonl --plot picture.jpg", "PNG"),
        ("suggest -c lengths.jsonl -n 1", "from 2 on"),
        ("suggest -c empty_text.jsonl", "no samples to suggest edges for"),
        ("gym run --game chess", "no game 'chess'"),
        ("gym run --port 1 -o s.jsonl", "cannot connect to 127.0.0.1:1"),
        ("gym info --port 1", "python -m batching.streaming.puzzle_server --port 1"),
        ("gym run -o samples.csv", "must end in .jsonl"),
        ("gym run -o texts.jsonl", "is there already"),
        ("gym run --eviction fifo", "none is named"),
        ("gym run --buffer texts.jsonl", "texts.jsonl is damaged"),
        ("trajectories -r folder -o s.jsonl", "folder holds no run"),
        ("trajectories -r folder --least-reward nan", "must be a number, not nan"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told_in_a_line_or_two_and_writes_nothing(
    files_of_all_kinds: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    told: str,
) -> None:
    monkeypatch.chdir(files_of_all_kinds)
    before = files()
    capsys.readouterr()
    assert run(*shlex.split(words)) == 2
    output, error = capsys.readouterr()
    assert told in error
    assert error.startswith("error: ")
    assert error.count("\n") <= 2
    assert output == ""
    assert files() == before


def test_lengths_are_those_of_the_tokens_and_are_measured_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure()
    assert "280 lengths, 97,984 tokens (280 measured)" in capsys.readouterr().out
    before = files()
    measure()
    assert "all were there already" in capsys.readouterr().out
    assert files() == before
    lengths = LengthCache.open("lengths.jsonl", read_only=True).lengths()
    rows = map(json.loads, TEXTS.read_text().splitlines())
    row = next(row for row in rows if "prompt" in row)
    assert lengths[row["id"]] == len(f"{row['prompt']}{row['completion']}".encode()) + 1, "and eos"
    assert run("lengths", "stats", "-c", "lengths.jsonl", "--json") == 0
    told = as_json(capsys)
    assert (told["num_samples"], told["num_tokens"]) == (280, sum(lengths.values()))
    assert told["tokenizer_hash"] == ByteTokenizer.tokenizer_hash


def test_lengths_of_another_tokenizer_are_kept_unless_they_are_to_be_replaced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure()
    before = files()
    words = ["lengths", "build", "-d", TEXTS, "-t", "embedded", "-o", "lengths.jsonl"]
    assert run(*words) == 2
    assert "of another tokenizer" in capsys.readouterr().err
    assert files() == before
    assert run(*words, "--overwrite") == 0
    assert "280 measured" in capsys.readouterr().out
    assert LengthCache.open("lengths.jsonl", read_only=True).tokenizer_hash != (
        ByteTokenizer.tokenizer_hash
    )
    assert set(files()) == set(before), "nothing is left over"


def test_what_a_killed_measuring_left_is_no_complete_file_and_is_gone_on_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure("uninterrupted.jsonl")
    written = Path("uninterrupted.jsonl").read_bytes()
    words = ["lengths", "build", "-d", TEXTS, "-t", "bytes", "-o", "lengths.jsonl"]
    killed = signalled("os.rename", 1, signal.SIGKILL, *words)
    assert killed.returncode == -signal.SIGKILL
    left = Path("lengths.jsonl.partial")
    assert left.read_bytes() == written, "killed when all were measured"
    assert run("plan", "build", "-l", "lengths.jsonl", "-o", "plan") == 2
    assert "is not complete" in capsys.readouterr().err
    for whole in (0.02, 0.5, 0.97):
        kept = written[: int(whole * len(written))]  # as it was a moment before
        left.write_bytes(kept)
        assert run(*words) == 0
        measured = written.count(b"\n") - kept.count(b"\n")
        assert f"({measured} measured)" in capsys.readouterr().out
        assert Path("lengths.jsonl").read_bytes() == written
        assert not left.exists()
        Path("lengths.jsonl").unlink()


def test_ctrl_c_keeps_the_lengths_that_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(json.dumps({"text": f"text {number}"}) + "\n" for number in range(3000))
    Path("many.jsonl").write_text(rows)
    words = ["lengths", "build", "-d", "many.jsonl", "-t", "bytes", "-o", "lengths.jsonl"]
    stopped = signalled("none", 1, signal.SIGINT, *words, largest_file=200_000)
    told = "interrupted; 2,048 of 3,000 lengths are kept: the same command goes on\n"
    assert (stopped.returncode, stopped.stderr) == (130, told)
    assert run(*words) == 0
    found = re.search(r"3,000 lengths, .* \((\d+) measured\)", capsys.readouterr().out)
    assert found
    assert 0 < int(found[1]) <= 952, "what was written of the third block is kept too"


def test_analysis_is_text_json_and_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    measure()
    lengths = LengthCache.open("lengths.jsonl", read_only=True).arrays()[1]
    capsys.readouterr()
    assert run("histogram", "-c", "lengths.jsonl", "--json") == 0
    histogram = as_json(capsys)
    assert histogram["maximum"] == lengths.max()
    assert sum(histogram["counts"]) == len(lengths)
    assert histogram["percentiles"]["p50"] == np.percentile(lengths, 50, method="inverted_cdf")
    words = ["analyze", "-c", "lengths.jsonl", "-b", "4096", "--bucket-edges", "128,512"]
    assert run(*words, "--json") == 0
    analysis = as_json(capsys)
    assert [bucket["high"] for bucket in analysis["buckets"]["buckets"]] == [128, 512, 2048]
    assert analysis["report"]["best"] == "packing"
    for command in (
        ["histogram", "-c", "lengths.jsonl"],
        words,
        ["suggest", "-c", "lengths.jsonl"],
    ):
        name = f"{command[0]}.png"
        assert run(*command, "--plot", name) == 0
        assert f"picture: {name}" in capsys.readouterr().out
        assert Path(name).read_bytes().startswith(b"\x89PNG")
        assert run(*command, "--plot", name) == 2
        assert "is there already" in capsys.readouterr().err
    assert run(*words, "--plot-ways", "ways.png") == 0
    assert Path("ways.png").stat().st_size > 10_000


@pytest.mark.parametrize("goal", ["waste", "balance", "memory"])
def test_suggested_edges_make_a_plan(capsys: pytest.CaptureFixture[str], goal: str) -> None:
    measure()
    capsys.readouterr()
    assert run("suggest", "-c", "lengths.jsonl", "--goal", goal, "-n", "4", "--json") == 0
    told = as_json(capsys)
    assert len(told["edges"]) == 3
    if goal == "waste":
        assert told["suggested"]["efficiency"] > told["in_use"]["efficiency"]
    config = make_plan(*told["flags"].split(), "--predictable").meta.config
    assert list(config.bucket_edges) == told["edges"]
    assert config.overflow_max == told["overflow_max"]


def test_puzzles_become_samples_a_data_set_and_a_buffer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gym", "run", "-n", "4", "-o", "samples.jsonl", "--buffer", "buffer.json") == 0
    assert "4 episodes, 4 solved, 12 samples" in capsys.readouterr().out
    samples = list(read_samples("samples.jsonl"))
    assert samples == list(ReplayBuffer.load("buffer.json"))
    assert [sample.reward for sample in samples[:3]] == [0, 0, 1]
    measure("lengths.jsonl", Path("samples.jsonl"))
    lengths = LengthCache.open("lengths.jsonl", read_only=True).lengths()
    assert lengths == {sample.sample_id: len(sample) for sample in samples}
    assert run("gym", "run", "-n", "1", "--buffer", "buffer.json", "--game", "order") == 0
    assert len(ReplayBuffer.load("buffer.json")) > 12
    assert run("gym", "run", "-n", "1", "--buffer", "buffer.json", "--buffer-size", "7") == 2
    assert "was made with --buffer-size 10000" in capsys.readouterr().err


def test_a_second_writer_to_a_buffer_is_refused_and_nothing_is_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["gym", "run", "--buffer", "buffer.json", "-n", "1"]
    assert run(*words) == 0
    before = files()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        port = str(listener.getsockname()[1])
        command = [sys.executable, "-m", "batching", *words, "--port", port]
        with subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL
        ) as first:
            connection, _ = listener.accept()  # it has read the buffer, and plays
            assert run(*words) == 2
            assert "another process is writing to buffer.json" in capsys.readouterr().err
            connection.close()
    assert first.returncode == 2
    assert files() == before
    assert run(*words) == 0
    assert len(ReplayBuffer.load("buffer.json")) == 6


def test_a_torn_line_of_samples_is_told_by_its_number() -> None:
    assert run("gym", "run", "-n", "2", "-o", "samples.jsonl") == 0
    content = Path("samples.jsonl").read_bytes()
    Path("samples.jsonl").write_bytes(content[:-20])
    with pytest.raises(UserError, match="line 6 is no sample"):
        list(read_samples("samples.jsonl"))


def test_puzzles_are_played_on_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    with PuzzleServer(0) as server:
        where = ["--port", str(server.port), "--game", "order"]
        assert run("gym", "info", *where, "--json") == 0
        told = as_json(capsys)
        assert told["where"] == f"127.0.0.1:{server.port}"
        assert told["hint"].startswith("swap ")
        assert run("gym", "run", *where, "-n", "3", "-o", "served.jsonl") == 0
    assert run("gym", "run", "--game", "order", "-n", "3", "-o", "here.jsonl") == 0
    served, here = (list(read_samples(name)) for name in ("served.jsonl", "here.jsonl"))
    assert [sample.input_ids for sample in served] == [sample.input_ids for sample in here]
    assert {sample.source for sample in served} == {"gym"}


def test_ctrl_c_keeps_the_episodes_that_have_ended() -> None:
    with PuzzleServer(0) as server:
        words = ["gym", "run", "--port", str(server.port), "-n", "6"]
        # The first connection looks at the puzzle; the fifth is the fourth episode's.
        kept = ["-o", "first.jsonl", "--buffer", "buffer.json"]
        stopped = signalled("socket.connect", 5, signal.SIGINT, *words, *kept)
        assert stopped.returncode == 130
        assert stopped.stderr == "interrupted; --first-episode 3 -n 3 and another -o go on\n"
        rest = ["--first-episode", "3", "-n", "3", "-o", "second.jsonl"]
        assert run(*words, *rest) == 0
        assert run(*words, "-o", "whole.jsonl") == 0
    first, second, whole = (
        list(read_samples(f"{name}.jsonl")) for name in ("first", "second", "whole")
    )
    assert first
    assert first + second == whole
    assert list(ReplayBuffer.load("buffer.json")) == first


def test_a_run_becomes_samples(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    lines = [transition(number) for number in range(60)]
    Path("run/transitions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rewrites = [line for line in lines if line["operator"] != "stop"]
    improved = [line for line in rewrites if line["score"] > line["previous_score"]]
    assert 0 < len(improved) < len(rewrites) < 60
    trajectories = ["trajectories", "-r", "run", "-o"]
    assert run(*trajectories, "all.jsonl", "--buffer", "buffer.json") == 0
    assert f"left out: {60 - len(rewrites)} stopped" in capsys.readouterr().out
    assert (
        len(list(read_samples("all.jsonl")))
        == len(rewrites)
        == (len(ReplayBuffer.load("buffer.json")))
    )
    for name, flags in (("good.jsonl", ["--improved"]), ("best.jsonl", ["--least-reward", "1"])):
        assert run(*trajectories, name, *flags) == 0
        found = list(read_samples(name))
        assert [sample.meta["completion"] for sample in found] == [
            line["rewritten_query"] for line in improved
        ]
    measure("lengths.jsonl", Path("good.jsonl"))
    assert run(*trajectories, "good.jsonl") == 2
    assert "is there already" in capsys.readouterr().err
    Path("run/transitions.jsonl").write_text(json.dumps(lines[0]) + "\nrubbish\n")
    assert run(*trajectories, "damaged.jsonl") == 2
    assert "line 2 is damaged" in capsys.readouterr().err
    assert not Path("damaged.jsonl").exists()


def test_nothing_that_files_hold_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    row = json.dumps({"id": HOSTILE, "text": HOSTILE * 200})
    Path("texts.jsonl").write_text(row + "\n" + row + "\n")
    assert run("lengths", "build", "-d", "texts.jsonl", "-t", "bytes", "-o", "l.jsonl") == 2
    Path("texts.jsonl").write_text(row + "\n")
    measure("lengths.jsonl", Path("texts.jsonl"))
    header, entry = Path("lengths.jsonl").read_text().splitlines()
    # Another cache, whose hashes are an attack too.
    attack = json.dumps(HOSTILE)[1:-1]
    hostile = [line.replace(ByteTokenizer.tokenizer_hash, attack) for line in (header, entry)]
    Path("hostile.jsonl").write_text("\n".join(hostile) + "\n")
    for words in (
        "lengths stats -c hostile.jsonl", "histogram -c hostile.jsonl",
        "plan build -l hostile.jsonl -o refused -b 64",
        "plan build -l hostile.jsonl -o hostile", "plan info -p hostile",
        "plan info -p hostile --json", "plan verify -p hostile -l lengths.jsonl",
        "plan verify -p hostile -l lengths.jsonl --json",
        "generate -p hostile -d texts.jsonl -t bytes -o batches",
        f"lengths stats -c 'no{HOSTILE}where'", f"gym run --game '{HOSTILE}'",
    ):  # fmt: skip
        run(*shlex.split(words))
    output, error = capsys.readouterr()
    assert "differs from" in output
    assert not set(HOSTILE[:1] + HOSTILE[4:]) & set(output + error)
