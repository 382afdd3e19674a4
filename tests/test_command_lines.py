"""What a person types: a mistake gets a line that says what to type, and files stay as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from query_mutator.cli import main
from tests.report_runs import transition, write_run

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ["train_query_mutator.py", "evaluate_query_mutator.py", "mutate_query.py"]
WITHOUT_LIBRARIES = [sys.executable, "-S", "-E"]


def process(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        words, cwd=ROOT, env=kept | environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("command", ["stats", "clear"])
def test_an_empty_file_is_an_empty_cache_and_stays_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = tmp_path / "empty.sqlite"
    file.touch()
    assert main(["cache", command, "--cache", str(file)]) == 0
    assert capsys.readouterr().out == f"{file} is empty: it holds no replies\n"
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == [file.name]
    assert file.read_bytes() == b""


def test_cache_names_no_flag_that_it_has_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine, and no cache")
    assert main(["cache", "stats", "--cache", str(file)]) == 2
    told = capsys.readouterr().err
    assert "name another with --cache" in told
    assert "--no-cache" not in told
    assert file.read_text() == "mine, and no cache"


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        ("cache", "command: stats, clear ("),
        ("batching", "command: lengths, histogram, analyze, suggest, plan, generate, gym, "),
        ("batching plan", "subcommand: build, info, verify, shard ("),
    ],
)
def test_a_command_without_its_subcommand_lists_them(
    capsys: pytest.CaptureFixture[str], words: str, choices: str
) -> None:
    assert main(words.split()) == 2
    assert choices in capsys.readouterr().err


def test_a_directory_after_resume_is_told_where_it_belongs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["train", "--resume", "runs/x"]) == 2
    assert "write --resume --run-dir runs/x" in capsys.readouterr().err
    assert main(["train", "--resume", "--bogus"]) == 2
    assert "--resume needs" not in capsys.readouterr().err


def test_what_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [transition(number) for number in range(40)])
    place = tmp_path / "a_file" / "table.csv"
    place.parent.touch()
    for words in (
        ["compare", str(run), "--output", str(place)],
        ["extract", "--runs", str(run), "--metrics", "Time/target", "--output", str(place)],
    ):
        assert main(words) == 2
        assert capsys.readouterr().err == f"error: cannot write {place}: Not a directory\n"
    blocked = tmp_path / "a_file"
    told = process(*WITHOUT_LIBRARIES, "-m", "query_mutator", "setup", XDG_CACHE_HOME=str(blocked))
    assert told.returncode == 2
    assert told.stderr.startswith(f"error: cannot write to {blocked}")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_python_without_the_libraries_is_told_what_to_do(script: str) -> None:
    flags = {"train_query_mutator.py": [], "mutate_query.py": ["--run", "x", "why"]}
    told = process(*WITHOUT_LIBRARIES, script, *flags.get(script, ["runs/x"]))
    assert told.returncode == 2
    lines = told.stderr.splitlines()
    assert len(lines) == 2
    assert "which is needed here." in lines[0]
    assert lines[1] == "In a checkout: `make setup`, then .venv/bin/python in place of python"


def test_a_command_names_others_as_they_are_started(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "query_mutator", "sweep", "--help"]
    assert "`python -m query_mutator train`" in " ".join(process(*command).stdout.split())
    told = process(sys.executable, "-m", "query_mutator", "batching", "plan", "build", "--help")
    assert "example:\n  query-mutator batching plan build -l lengths.jsonl" in told.stdout
    assert "python -m batching" not in told.stdout
