"""The directory of a run: config, transitions, checkpoints, summary; written so as not to tear."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from query_mutator.base.errors import UserError
from query_mutator.base.files import (
    PARTIAL,
    append,
    cut,
    remove_partial,
    size_of,
    sync,
    write_atomically,
)
from query_mutator.base.locks import LOCK, only_writer
from query_mutator.base.untrusted import DEEPEST, parse_json, read_text

if TYPE_CHECKING:
    from query_mutator.runs.checkpoints import CheckpointStore

CONFIG = "config.json"
SUMMARY = "summary.json"
TRANSITIONS = "transitions.jsonl"
CHECKPOINTS = "checkpoints"
TENSORBOARD = "tensorboard"
FIRST_CHECKPOINT = "step-000000000000.safetensors"


def default_run_dir() -> Path:
    """runs/, the time and the process."""
    return timed_directory(Path("runs"))


def timed_directory(parent: Path) -> Path:
    """A place in `parent` that nothing has: the time and the process, so no two choose the same.

    Where one process begins several within a second, a number follows.
    """
    name = f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}"
    numbered = (parent / f"{name}_{number}" for number in count(2))
    return next(path for path in chain([parent / name], numbered) if not path.exists())


class RunDirectory:
    """Reads and writes the files of one run."""

    flag = "--run-dir"
    """Which flag names it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._taken = contextlib.ExitStack()

    @property
    def checkpoints(self) -> CheckpointStore:
        from query_mutator.runs.checkpoints import CheckpointStore  # --help need not wait for torch

        return CheckpointStore(self.path / CHECKPOINTS)

    @property
    def transitions(self) -> Path:
        return self.path / TRANSITIONS

    @property
    def tensorboard(self) -> Path:
        return self.path / TENSORBOARD

    def check_new(self) -> None:
        """Refuses, before any work is done, a directory that a new run cannot be written to."""
        if self.path.is_dir():
            if any(self.path.iterdir()) and not self._holds_only_a_beginning():
                raise UserError(
                    f"{self.path} is not empty: go on with that run by --resume, "
                    f"or choose another {self.flag}"
                )
            writable = os.access(self.path, os.W_OK | os.X_OK)
        elif self.path.exists():
            raise UserError(f"{self.path} is a file, not a directory; choose another {self.flag}")
        else:
            parent = next(parent for parent in self.path.absolute().parents if parent.exists())
            writable = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
        if not writable:
            raise UserError(f"cannot write to {self.path}; choose another {self.flag}")

    def check_resumable(self) -> None:
        """Refuses a directory that has no run to go on with."""
        if not (self.path / CONFIG).is_file():
            raise UserError(f"{self.path} holds no run (no {CONFIG}); check {self.flag}")
        if not self.checkpoints.paths():
            raise UserError(
                f"{self.path} has no checkpoint to go on from; start it again without --resume "
                f"in another {self.flag}"
            )

    def create(self) -> None:
        """Makes the directory, private to the user, and takes it for this process.

        It holds a run as soon as `CONFIG` is in it, which is therefore written last. What a process
        that was killed before that has left is removed.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.take()
            self.check_new()
            self.remove_beginning()
            self.path.chmod(0o700)
        except OSError as error:
            raise UserError(
                f"cannot create {self.path}: {error.strerror}; choose another {self.flag}"
            ) from error

    def remove_beginning(self) -> None:
        """Removes what is left of a run that has not got as far as its `CONFIG`."""
        if self._holds_only_a_beginning():
            remove_partial(self.path)
            remove_partial(self.path / CHECKPOINTS)
            (self.path / CHECKPOINTS / FIRST_CHECKPOINT).unlink(missing_ok=True)
            (self.path / SUMMARY).unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                (self.path / CHECKPOINTS).rmdir()

    def _holds_only_a_beginning(self) -> bool:
        """Whether all that is there is what `create` and the writes before `CONFIG` leave.

        Nothing else is ever taken for it: it may be removed.
        """
        expected = {LOCK, SUMMARY, CHECKPOINTS}
        inside = self.path / CHECKPOINTS
        within = os.listdir(inside) if inside.is_dir() and not inside.is_symlink() else []
        return all(
            name in expected or _is_partial(name, (SUMMARY, CONFIG))
            for name in os.listdir(self.path)
        ) and all(
            name == FIRST_CHECKPOINT or _is_partial(name, (FIRST_CHECKPOINT,)) for name in within
        )

    def take(self) -> None:
        """Takes the directory for this process, until it ends: two writers would mix their runs."""
        self._taken.enter_context(only_writer(self.path, within=True))

    def release(self) -> None:
        """Gives the directory free again."""
        self._taken.close()

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Writes a JSON file whole or not at all."""
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        write_atomically(self.path / name, lambda file: file.write(text.encode("utf-8")))

    def read_json(self, name: str) -> dict[str, Any]:
        text = read_text(self.path / name, "the file")
        try:
            data = parse_json(text, deepest=DEEPEST)
        except ValueError as error:
            raise UserError(f"{self.path / name} is damaged: {error}") from error
        if not isinstance(data, dict):
            raise UserError(f"{self.path / name} is damaged: not an object")
        return data

    def append_transitions(self, lines: Iterable[dict[str, Any]], *, at: int) -> int:
        """Puts one JSON line for each after the first `at` bytes of the log.

        Returns the size of the file after it.
        """
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        return append(self.transitions, text.encode("utf-8", "replace"), at=at)

    def lost_transitions(self, size: int) -> str:
        """Why a run that has logged `size` bytes cannot go on, or ""."""
        if (found := size_of(self.transitions)) < size:
            return f"goes with {size} bytes of {TRANSITIONS}, which has {found}"
        return ""

    def cut_back(self, transitions_bytes: int, curves: dict[str, int]) -> None:
        """Drops all that was written after the checkpoint that the run goes on from."""
        from query_mutator.runs.curves import cut_curves

        remove_partial(self.path)
        cut(self.transitions, transitions_bytes)
        cut_curves(self.tensorboard, curves)

    def sync_logs(self, curves: Iterable[str]) -> None:
        """Has the logs reach the disk before a checkpoint that counts on them."""
        for path in (self.transitions, *(self.tensorboard / name for name in curves)):
            sync(path)


def _is_partial(name: str, whole: tuple[str, ...]) -> bool:
    return name.endswith(PARTIAL) and any(name.startswith(f".{kind}.") for kind in whole)
