"""A trained policy at work on questions it has not seen."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutate_query import main
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.evaluation.trained_policy import load_policy
from query_mutator.servers.simulated import Fault, SimulatedServer
from tests.test_training import train


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
        stands = len(row["operators"]) > len(row["not_kept"])
        assert (row["rewritten_query"] != row["question"]) == stands
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
        (["--run", "{run}", "--file", "nowhere.txt"], "cannot read the questions nowhere.txt"),
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
    dataset.write_text(DEFAULT_FILE.read_text())
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


def test_ctrl_c_keeps_what_is_done(run: Path, server: SimulatedServer, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("".join(f"question {number}?\n" for number in range(40)))
    server.set_faults(Fault("hang", calls=range(30, 10_000)))
    command = [sys.executable, "mutate_query.py", "--run", str(run), "--file", str(file), "--json"]
    said = tmp_path / "said"
    with said.open("w") as errors:
        process = subprocess.Popen(
            [*command, "--batch-size", "2"], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert process.stdout is not None
    done = [process.stdout.readline()]
    process.send_signal(signal.SIGINT)
    # Not communicate(): it would lose what readline() has read ahead.
    done += process.stdout.readlines()
    assert process.wait(timeout=60) == 130
    assert said.read_text().strip().endswith("interrupted")
    asked = [json.loads(line)["question"] for line in done]
    assert asked == [f"question {number}?" for number in range(len(asked))]
    assert len(asked) < 40


def test_neither_a_damaged_config_nor_a_lost_one_ends_in_a_traceback(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads((run / "config.json").read_text())
    settings, operators = config["settings"], config["operators"]
    first = operators[0]
    damaged: dict[str, tuple[Any, str]] = {
        "wrong type": ({**config, "settings": {**settings, "timeout": "soon"}}, "--timeout must"),
        "not text": ({**config, "settings": {**settings, "objective": 5}}, "--objective must"),
        "unknown": ({**config, "settings": {**settings, "colour": 1}}, "unknown setting 'colour'"),
        "out of range": ({**config, "settings": {**settings, "hidden_size": -1}}, "--hidden-size"),
        "no rewrites": ({**config, "settings": {**settings, "max_rewrites": None}}, "max_rewrites"),
        "no operators": ({"settings": settings}, "no list of operators"),
        "no settings": ({"operators": operators}, "config.json"),
        "no object": ([], "config.json"),
        "operator's name": ({**config, "operators": [{**first, "name": 5}]}, "name is 5"),
        "operator's text": ({**config, "operators": [{**first, "ends_with": [5]}]}, "ends_with is"),
        "operator's edit": ({**config, "operators": [{**first, "edits": ["x"]}]}, "no edit 'x'"),
        "operator's key": ({**config, "operators": [{**first, "colour": 5}]}, "'colour'"),
        "no operator": ({**config, "operators": ["rephrase"]}, "not as it was stored"),
        "examples": ({**config, "operators": [{**first, "examples": 1}]}, "not as it was stored"),
        "one operator": ({**config, "operators": [first]}, "does not fit"),
    }
    for what, (content, message) in damaged.items():
        (run / "config.json").write_text(json.dumps(content))
        capsys.readouterr()
        assert main(["--run", str(run), "q"]) == 2, what
        said = capsys.readouterr().err
        assert message in said, what
        assert len(said.splitlines()) <= 2, what


def test_a_choice_is_explained_by_what_similar_training_questions_gained(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [json.loads(line) for line in (run / "transitions.jsonl").read_text().splitlines()]
    tried = next(
        step
        for step in steps
        if step["operator"] != "stop" and step["query"] == step["original_query"]
    )
    capsys.readouterr()
    assert main(["--run", str(run), "--explain", "--json", tried["original_query"]]) == 0
    similar = json.loads(capsys.readouterr().out)["similar"]
    assert len(similar) == 3
    assert similar[0]["question"] == tried["original_query"]
    assert similar[0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert similar[0]["gains"][tried["operator"]] == pytest.approx(
        np.mean(
            [
                step["reward"]
                for step in steps
                if step["query"] == step["original_query"] == tried["original_query"]
                and step["operator"] == tried["operator"]
            ]
        )
    )
    assert main(["--run", str(run), "--explain", tried["original_query"]]) == 0
    assert f"similar:    {tried['original_query']} (" in capsys.readouterr().out


def test_a_question_is_left_alone_where_the_policy_is_not_sure(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = "wat is teh capital of peru"
    capsys.readouterr()
    assert main(["--run", str(run), "--json", question]) == 0
    chosen = json.loads(capsys.readouterr().out)
    best, chance = next(iter(chosen["probabilities"].items()))
    assert chosen["operators"][:1] == [best], "a policy that stops at once would prove nothing"
    assert main(["--run", str(run), "--json", "--only-if-confident", "1", question]) == 0
    left = json.loads(capsys.readouterr().out)
    assert left["operators"] == []
    assert left["rewritten_query"] == question
    assert left["answer_after"] == left["answer_before"]
    assert main(["--run", str(run), "--only-if-confident", "1", question]) == 0
    said = capsys.readouterr().out
    assert f"none: {best} would be the choice, with {chance:.0%} below the 100% asked for" in said
    sure = str(chance - 0.01)
    assert main(["--run", str(run), "--json", "--only-if-confident", sure, question]) == 0
    assert json.loads(capsys.readouterr().out)["operators"][:1] == [best]


def test_a_policy_needs_no_judge_to_rewrite(tmp_path: Path, server: SimulatedServer) -> None:
    run = tmp_path / "run"
    with SimulatedServer(models=("wise:70b",)) as judge:
        flags = ["--objective", "judge", "--judge-server", judge.url, "--judge-model", "wise:70b"]
        assert train(server, run, *flags) == 0
    with load_policy(run) as policy:
        rewritten = policy.rewrite("wat is teh capital of peru")
    assert rewritten.failed == ""
    assert rewritten.answer_before
    assert (rewritten.rewritten_query == rewritten.question) == (not rewritten.operators)
    assert sum(rewritten.probabilities.values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_checkpoint_is_refused(
    damage: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for checkpoint in (run / "checkpoints").iterdir():
        content = checkpoint.read_bytes()
        bad = content[: len(content) // 2] if damage == "cut" else b"not a checkpoint"
        checkpoint.write_bytes(bad)
    assert main(["--run", str(run), "q"]) == 2
    assert "damaged or of another kind" in capsys.readouterr().err
