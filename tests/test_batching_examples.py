"""The examples of the token batching guide run as a reader runs them, and tell what is true."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batching.__main__ import main
from tests.report_runs import transition

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "batching"
LONGEST = 80


def basic(said: str) -> None:
    assert "31 batches, none over 4096 tokens" in said
    shapes = re.findall(r"(\d+) rows × +(\d+) = (\d+) tokens", said)
    assert len(shapes) == 5
    assert all(int(rows) * int(width) == int(all_) <= 4096 for rows, width, all_ in shapes)
    assert said.count("True") == 2


def packing(said: str) -> None:
    rows = dict(re.findall(r"(\w+_fit|greedy) .* in (\d+) rows", said))
    bound = int(re.findall(r"fewer than (\d+) rows", said)[0])
    assert bound <= int(rows["best_fit"]) <= int(rows["first_fit"]) < int(rows["greedy"])
    assert "segments (0, 0, 1, 1)" in said
    assert "of another segment: False" in said
    assert "over 512 tokens: True" in said


def plan(said: str) -> None:
    assert said.count("same fingerprint: True") == 2
    assert "differences: []" in said
    assert "built from other lengths" in said
    assert "the same: True" in said


def distributed(said: str) -> None:
    assert len(set(re.findall(r"rank \d: (\d+) steps", said))) == 1
    assert sum(map(int, re.findall(r"(\d+) samples", said))) == 280
    assert said.count("True") == 2
    assert "[0, 1, 2, 3, 0, 1, 2, 3]" in said


def end_to_end(said: str) -> None:
    assert "1. 280 lengths" in said
    assert re.search(r"2\. plan [0-9a-f]{12}: 50 batches", said)
    assert said.count("97984 tokens, 29092 of them in the loss") == 2


def analysis(said: str) -> None:
    figures = dict(re.findall(r"^(waste|balance|memory) .*: ([\d.]+)%", said, re.MULTILINE))
    assert float(figures["waste"]) == max(map(float, figures.values())) > 70.6
    assert "Pack several samples into each row" in said


def streaming(said: str) -> None:
    assert sum(map(int, re.findall(r"window \d: (\d+) samples", said))) == 508
    assert "refused: {'length ≤ 1024': 52}" in said
    assert "none lost: True" in said
    assert "the same as without a stop: True" in said
    assert "asynchronously: 2 windows" in said


def online_learning(said: str) -> None:
    asked = [int(share) for share in re.findall(r"asked for (\d+)% of", said)]
    assert len(asked) == 8
    assert asked[0] == 100
    assert max(asked[-3:]) < 10, "it has learned most of the moves"
    assert said.count("40/40 solved") == 8


CHECKS: dict[str, Callable[[str], None]] = {
    "01_basic_batching": basic,
    "02_packing": packing,
    "03_batch_plan": plan,
    "04_distributed": distributed,
    "05_end_to_end": end_to_end,
    "06_analysis": analysis,
    "07_streaming": streaming,
    "08_online_learning": online_learning,
}


@pytest.mark.parametrize("name", CHECKS)
def test_an_example_runs_and_tells_what_is_true(name: str) -> None:
    done = subprocess.run(
        [sys.executable, f"examples/batching/{name}.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    CHECKS[name](done.stdout)


def test_every_example_is_run_and_short() -> None:
    found = {path.stem: path for path in EXAMPLES.glob("*.py")}
    assert set(found) == set(CHECKS)
    assert all(len(path.read_text().splitlines()) < LONGEST for path in found.values())


def test_the_commands_of_the_guide_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    Path("runs/NAME").mkdir(parents=True)
    lines = [json.dumps(transition(number)) + "\n" for number in range(40)]
    Path("runs/NAME/transitions.jsonl").write_text("".join(lines))
    guide = (ROOT / "docs" / "token_batching.md").read_text()
    commands = re.findall(r"^python -m batching (.*)$", guide, re.MULTILINE)
    assert len(commands) > 15
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    (python,) = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(python, "token_batching.md", "exec"), found)
    assert found["batch"].input_ids.size <= 4096


def test_what_the_guide_names_is_there() -> None:
    guide = (ROOT / "docs" / "token_batching.md").read_text()
    for path in re.findall(r"`(tests/[a-z_]+\.py)`", guide):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"python -m (benchmarks\.\w+|servers\.\w+)", guide):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
