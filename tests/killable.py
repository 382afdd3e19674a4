"""Processes to be killed: forked, in milliseconds, from one that has loaded everything already."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from query_mutator.base.terminal import leave
from query_mutator.models import settings as model_settings
from query_mutator.runs.checkpoints import Checkpoint, CheckpointStore
from query_mutator.runs.directory import SUMMARY, RunDirectory
from query_mutator.training.command import _write_beginning
from tests.conftest import SHORT_PAUSES

DEADLINE_S = 300.0
"""Within this a test fails in place of hanging; nothing is measured by it."""
WATCHED = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.chmod", "os.listdir"}
"""What a process does to files, as Python's audit hooks name it."""


def forked(target: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    """A process that runs `target`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.killable_loaded"])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def command(
    main: Callable[[Sequence[str]], int],
    argv: Sequence[str],
    log: Path,
    watched: Path | None = None,
    kill_at: int = 0,
    largest_file: int = 0,
    room: int = 0,
) -> None:
    """Runs a command as its script does, with what it says in `log`.

    It is killed at the `kill_at`-th time it touches a file in `watched`; with `room`, it is given
    no more than so many bytes of memory once the file `watched` is written.
    """
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    model_settings.PAUSES = SHORT_PAUSES
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    if watched and room:
        limit_memory_after(watched, room)
    elif watched:
        kill_self_at(watched, kill_at)
    code = main(argv)
    sys.stdout.flush()
    leave(code)


def ended(process: ForkServerProcess) -> int:
    """The exit code of a process, which has to come to its end."""
    process.join(DEADLINE_S)
    if process.exitcode is None:
        process.kill()
        raise AssertionError("it is stuck")
    return process.exitcode


def until(happened: Callable[[], bool], process: ForkServerProcess) -> None:
    """Waits for what a running process is about to do."""
    latest = time.monotonic() + DEADLINE_S
    while not happened():
        process.join(0.01)
        if process.exitcode is not None:
            assert happened(), "it ended before"
        if time.monotonic() > latest:
            process.kill()
            raise AssertionError("it is stuck")


def until_said(text: str, log: Path, process: ForkServerProcess) -> None:
    """Waits for what a running process is about to say."""
    until(lambda: log.exists() and text in log.read_text(), process)


def begin(path: Path, checkpoint: Checkpoint, kill_at: int) -> None:
    """Writes the beginning of a run."""
    run = RunDirectory(path)

    def save() -> None:
        run.checkpoints.save(0, checkpoint)
        run.write_json(SUMMARY, {})

    kill_self_at(path, kill_at)
    _write_beginning(run, save, {"settings": {}})


def save(directory: Path, step: int, checkpoint: Checkpoint, kill_at: int) -> None:
    """Writes one more checkpoint."""
    kill_self_at(directory, kill_at)
    CheckpointStore(directory).save(step, checkpoint)


def kill_self_at(watched: Path, kill_at: int) -> None:
    """Has this process killed at the `kill_at`-th time it touches a file in `watched`."""
    inside, touched = str(watched), 0

    def on_event(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal touched
        if event in WATCHED and (
            isinstance(arguments[0], int) or str(arguments[0]).startswith(inside)
        ):
            touched += 1
            if touched == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    if kill_at:
        sys.addaudithook(on_event)


def limit_memory_after(written: Path, room: int) -> None:
    """Refuses this process more than `room` further bytes of memory once a file is written."""

    def on_event(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.rename" and str(arguments[1]) == str(written):
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + room
            resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

    sys.addaudithook(on_event)
