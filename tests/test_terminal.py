"""What others wrote reaches the terminal as text and as nothing else."""

from __future__ import annotations

import io
import json
import logging
import shutil
import sys
import unicodedata
from pathlib import Path

import pytest

from evaluate_query_mutator import main as evaluate
from mutate_query import main as mutate
from query_mutator.base.terminal import DRIVING, PlainStream, exit_code, printable
from query_mutator.cli import main as experiments
from query_mutator.models.cache import ResponseCache
from query_mutator.objectives.refusal.__main__ import main as refusal
from query_mutator.servers.simulated import Fault, SimulatedServer
from train_query_mutator import main as train

EVIL = "\x1b]0;owned\x07\x1b[2J\u202ereversed\u2066\x9b31m\x00\r\x08\u200b\ue000"
MODEL = f"model{EVIL}:1b"
FLAGS = ["--num-processes", "2", "--num-steps", "4", "--num-env-steps", "8", "--retries", "0"]
FLAGS += [
    "--num-mini-batch",
    "1",
    "--eval-interval",
    "1",
    "--eval-sample",
    "2",
    "--batch-size",
    "2",
]


def assert_plain(output: str) -> None:
    driving = {c for c in output if unicodedata.category(c) in DRIVING} - {"\n"}
    assert not driving, sorted(map(hex, map(ord, driving)))


@pytest.mark.slow
def test_no_command_lets_anything_hostile_through(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Hostile text in questions, categories, models, answers, errors, file and directory names."""
    name = EVIL.replace("\x00", "")
    dataset = tmp_path / f"data{name}.jsonl"
    rows = [
        {
            "id": f"q{n}{name}",
            "question": f"What {name} is {n}?",
            "reference": f"{n}{name}",
            "category": f"kind{name}",
            "split": "train" if n < 3 else "heldout",
        }
        for n in range(6)
    ]
    dataset.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = str(tmp_path / f"run{name}")
    cache_file = str(tmp_path / f"cache{name}.sqlite")
    said = ""

    def ran(code: int) -> int:
        nonlocal said
        captured = capfd.readouterr()
        said += captured.out + captured.err
        return code

    with SimulatedServer(models=(MODEL,), answer=lambda *_: f"an answer {EVIL}") as server:
        server.set_faults(Fault("bad_request", calls=(4,), text=EVIL))
        where = ["--server", server.url]
        argv = [*where, "--dataset", str(dataset), "--run-dir", run, "--cache", cache_file, *FLAGS]
        assert ran(train(argv)) == 0
        assert ran(train([*where, "--resume", "--run-dir", run, "--seed", "9"])) == 2
        assert ran(mutate([*where, "--run", run, "--explain", f"why {name}?"])) == 0
        assert ran(mutate([*where, "--run", run, "--json", "why?"])) == 0
        assert ran(train([*where, "--target-model", name])) == 2
        assert ran(evaluate([run, *where, "--num-questions", "2"])) == 0
    assert ran(experiments(["show", run])) == 0
    assert ran(experiments(["cache", "stats", "--cache", cache_file])) == 0
    assert ran(train(["--dataset", name, f"--no-such{name}"])) == 2
    config = tmp_path / "config.json"
    for text in (json.dumps({EVIL: 1}), json.dumps({"seed": EVIL}), EVIL):
        config.write_text(text)
        assert ran(train(["--config", str(config)])) == 2
    operators = tmp_path / "operators.toml"
    for text in (f"a = '{EVIL}'", f'[[operator]]\nname = {json.dumps(EVIL)}\ntemplate = "x"'):
        operators.write_text(text)
        assert ran(train(["--operators", str(operators)])) == 2
    labelled = tmp_path / f"l{name}.jsonl"
    labelled.write_text(json.dumps({"answer": EVIL, "label": "refusal", "kind": EVIL}))
    assert ran(refusal([str(labelled), "--show"])) == 0
    assert "owned" in said
    assert_plain(said)
    shutil.rmtree(run)


def test_what_a_library_or_a_bug_prints_is_filtered_too(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        logger, handler = logging.getLogger("some.library"), logging.StreamHandler(sys.stderr)
        logger.addHandler(handler)
        logger.warning("logged %s", EVIL)
        logger.removeHandler(handler)
        sys.stdout.writelines([EVIL, "\n"])
        raise RuntimeError(EVIL)

    assert exit_code(command) == 1
    captured = capsys.readouterr()
    assert "logged" in captured.err
    assert "RuntimeError" in captured.err
    assert_plain(captured.out + captured.err)


def test_a_bar_may_return_to_the_start_of_its_line_and_a_text_may_not() -> None:
    stream = io.StringIO()
    plain = PlainStream(stream)
    plain.write("\r 5 %\r")
    plain.write("safe\roverwritten\n\x1b[A")
    assert stream.getvalue() == "\r 5 %\rsafe overwritten\n[A"


def test_an_old_code_page_gets_what_it_lacks_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    assert exit_code(lambda: print("naïve 日") or 0) == 0
    assert written.getvalue() == "naïve \\u65e5\n".encode("cp1252")


@pytest.mark.parametrize("code", [0x1B, 0x9B, 0x202E, 0x2066, 0x200B, 0xFEFF, 0xE000, 0xD800, 0])
def test_characters_that_drive_a_terminal_are_dropped(code: int) -> None:
    assert printable(f"a{chr(code)}b") == "ab"


def test_texts_of_people_stay_as_they_are() -> None:
    text = "naïve – «Größe» 日本語 العربية 👍 e\u0301"
    assert printable(text) == text
    assert printable("two\nlines\u2028three") == "two lines three"


def test_an_unusable_cache_is_a_line_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from query_mutator.models.session import _open_cache

    (tmp_path / "notes.txt").write_text("no database" * 100)
    assert _open_cache(tmp_path / "notes.txt") is None
    assert "going on without it" in caplog.text
    assert isinstance(_open_cache(tmp_path / "fresh.sqlite"), ResponseCache)
