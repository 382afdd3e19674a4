"""Processes to be killed: forked, in milliseconds, from one that has loaded everything already."""

from __future__ import annotations

import functools
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import torch

import query_mutator.evaluation.command
import query_mutator.reports.show  # noqa: F401
from query_mutator.base.weights import packaged_model_path
from query_mutator.models import session
from query_mutator.models.encoders import Encoder, SentenceTransformerEmbedder
from query_mutator.runs.checkpoints import Checkpoint, CheckpointStore
from query_mutator.runs.directory import SUMMARY, RunDirectory
from query_mutator.training.command import _write_beginning
from train_query_mutator import main

WATCHED = {"open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "os.chmod", "os.listdir"}
"""What a process does to files, as Python's audit hooks name it."""


@functools.cache
def embedder() -> SentenceTransformerEmbedder:
    torch.set_num_threads(1)
    return SentenceTransformerEmbedder(str(packaged_model_path()))


def forked(target: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    """A process that runs `target`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.killable_loaded"])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def train(
    argv: Sequence[str], log: Path, watched: Path, kill_at: int = 0, largest_file: int = 0
) -> None:
    """Runs the training command, with what it says in `log`.

    It is killed at the `kill_at`-th time it touches a file in `watched`.
    """
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # The real one, already loaded.
    vars(session)["load_encoder"] = lambda *_, **__: Encoder(embedder())
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    kill_self_at(watched, kill_at)
    code = main(argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


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
