"""A trained policy at work on questions it has not seen."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from mutate_query import main
from servers.simulated import Fault, SimulatedServer
from tests.test_training import train


@pytest.fixture
def run(server: SimulatedServer, tmp_path: Path) -> Path:
    path = tmp_path / "run"
    assert train(server, path) == 0
    return path


def test_a_question_is_shown_before_and_after(
    run: Path, server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["--run", str(run), "wat is teh capital of peru"]) == 0
    shown = capsys.readouterr().out
    assert "question:   wat is teh capital of peru" in shown
    assert "operators:" in shown
    assert "before:" in shown


def test_questions_come_from_a_file_or_standard_input_and_go_out_as_json(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("first question?\n\nsecond question?\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("third question?\n"))
    capsys.readouterr()
    assert main(["--run", str(run), "--file", str(file), "--json", "-"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["question"] for row in rows] == [
        "first question?",
        "second question?",
        "third question?",
    ]
    for row in rows:
        assert (row["rewritten_query"] == row["question"]) == (not row["operators"])
        assert row["answer_before"]
        assert row["failed"] == ""


def test_a_failed_call_leaves_the_question_alone_and_says_so(
    run: Path, server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.set_faults(Fault("bad_request"))
    capsys.readouterr()
    assert main(["--run", str(run), "--json", "anything?"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert row["failed"]
    assert row["rewritten_query"] == "anything?"


def test_control_characters_never_reach_the_terminal(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    main(["--run", str(run), "what \x1b[31mis\x07 this?"])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--run", "nowhere", "q"], "holds no run"),
        (["--run", "{run}"], "no question"),
        (["--run", "{run}", "--file", "nowhere.txt"], "cannot read nowhere.txt"),
        (["--run", "{run}", "--target-model", "mistral", "q"], "no model 'mistral'"),
        (["--run", "{run}", "--batch-size", "0", "q"], "--batch-size must be at least 1"),
        (["--run", "{run}", "--batch-size", "x", "q"], "--batch-size"),
    ],
)
def test_bad_input_is_one_clear_line(
    argv: list[str],
    message: str,
    run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    capsys.readouterr()
    assert main([part.replace("{run}", str(run)) for part in argv]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert message in "\n".join(said)
    assert len(said) <= 2


def test_it_needs_neither_the_dataset_nor_the_files_of_the_run(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operators, dataset = tmp_path / "mine.toml", tmp_path / "mine.jsonl"
    operators.write_text('[[operator]]\nname = "please"\ntemplate = "Please: {query}"\n')
    dataset.write_text(Path("data/questions.jsonl").read_text())
    run = tmp_path / "run"
    flags = ["--operators", str(operators), "--dataset", str(dataset), "--no-batching"]
    assert train(server, run, *flags, "--only-operators", "please") == 0
    operators.write_text('[[operator]]\nname = "other"\ntemplate = "Other: {query}"\n')
    dataset.unlink()
    capsys.readouterr()
    assert main(["--run", str(run), "--json", "--batch-size", "8", "why?", "how?", "who?"]) == 0
    for line in capsys.readouterr().out.splitlines():
        row = json.loads(line)
        assert row["rewritten_query"] in {row["question"], f"Please: {row['question']}"}


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_checkpoint_is_refused(
    damage: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = run / "checkpoint.pt"
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: len(content) // 2] if damage == "cut" else b"not a checkpoint")
    assert main(["--run", str(run), "q"]) == 2
    assert "damaged or of another kind" in capsys.readouterr().err
