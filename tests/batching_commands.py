"""What the tests of `python -m batching` share: commands run here, or in a process to be killed."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from batching.__main__ import main
from batching.planning import BatchPlan

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ROOT / "examples" / "batching" / "texts.jsonl"
NUM_TEXTS, NUM_TOKENS = 280, 97_984
SIGNALLED = """
import os, signal, sys
from batching.__main__ import main
from query_mutator.base.terminal import leave
event, nth, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGXFSZ, signal.default_int_handler)
def on_event(name, arguments):
    global nth
    nth -= name == event
    if name == event and nth == 0:
        os.kill(os.getpid(), number)
sys.addaudithook(on_event)
leave(main(sys.argv[4:]))
"""
"""Runs a command and sends its own process a signal at the nth time that something happens."""


def run(*words: object) -> int:
    """The exit code of a command."""
    return main([str(word) for word in words])


def signalled(
    event: str, nth: int, number: signal.Signals, *words: object, largest_file: int = 0
) -> subprocess.CompletedProcess[str]:
    """A command that gets a signal at its nth `event`, or Ctrl-C in writing to too large a file."""

    def limit() -> None:
        if largest_file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))

    arguments = [event, str(nth), str(int(number)), *map(str, words)]
    return subprocess.run(
        [sys.executable, "-c", SIGNALLED, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=60,
    )


def measure(output: str = "lengths.jsonl", texts: Path = TEXTS) -> None:
    """Builds the lengths of a data set."""
    assert run("lengths", "build", "-d", texts, "-t", "bytes", "-o", output) == 0


def make_plan(*flags: str, output: str = "plan", epochs: int = 1) -> BatchPlan:
    """A plan of `lengths.jsonl`, which is built if it is not there."""
    if not Path("lengths.jsonl").exists():
        measure()
    words = ["plan", "build", "-l", "lengths.jsonl", "-b", "4096", "-e", str(epochs)]
    assert run(*words, *flags, "-o", output) == 0
    return BatchPlan.load(output)


def files() -> dict[str, bytes | None]:
    """All that is in the working directory, with its content."""
    found = [path for path in Path().rglob("*") if path.parts[0] != "examples"]
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def as_json(capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command has printed as JSON."""
    return json.loads(capsys.readouterr().out)
