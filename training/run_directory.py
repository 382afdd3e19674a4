"""The directory of a run: config, transitions, checkpoints, summary; written so as not to tear."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from errors import UserError

FORMAT = 1
CONFIG = "config.json"
SUMMARY = "summary.json"
TRANSITIONS = "transitions.jsonl"
CHECKPOINT = "checkpoint.pt"
TENSORBOARD = "tensorboard"


def default_run_dir() -> Path:
    """runs/, the time and the process: no two runs choose the same."""
    return Path("runs") / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}"


class RunDirectory:
    """Reads and writes the files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock: int | None = None

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    @property
    def transitions(self) -> Path:
        return self.path / TRANSITIONS

    @property
    def tensorboard(self) -> Path:
        return self.path / TENSORBOARD

    def check_new(self) -> None:
        """Refuses, before any work is done, a directory that a new run cannot be written to."""
        if self.path.is_dir():
            if any(self.path.iterdir()):
                raise UserError(
                    f"{self.path} is not empty: go on with that run by --resume, "
                    "or choose another --run-dir"
                )
            writable = os.access(self.path, os.W_OK | os.X_OK)
        elif self.path.exists():
            raise UserError(f"{self.path} is a file, not a directory; choose another --run-dir")
        else:
            parent = next(parent for parent in self.path.absolute().parents if parent.exists())
            writable = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
        if not writable:
            raise UserError(f"cannot write to {self.path}; choose another --run-dir")

    def check_resumable(self) -> None:
        """Refuses a directory that has no run to go on with."""
        if not (self.path / CONFIG).is_file():
            raise UserError(f"{self.path} holds no run (no {CONFIG}); check --run-dir")
        if not self.checkpoint.is_file():
            raise UserError(
                f"{self.path} has no checkpoint yet; start it again without --resume "
                "in another --run-dir"
            )

    def create(self) -> None:
        """Makes the directory, private to the user, and takes it for this process."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UserError(
                f"cannot create {self.path}: {error.strerror}; choose another --run-dir"
            ) from error
        self.take()
        self.check_new()

    def take(self) -> None:
        """Takes the directory for this process, until it ends: two writers would mix their runs."""
        self._lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"another process is writing to {self.path}") from error

    def release(self) -> None:
        """Gives the directory free again."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Writes a JSON file whole or not at all."""
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        self._write_atomically(name, lambda file: file.write(text.encode("utf-8")))

    def read_json(self, name: str) -> dict[str, Any]:
        try:
            data = json.loads((self.path / name).read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"cannot read {self.path / name}: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"{self.path / name} is damaged: {error}") from error
        if not isinstance(data, dict):
            raise UserError(f"{self.path / name} is damaged: not an object")
        return data

    def save_checkpoint(self, tensors: dict[str, Any], state: dict[str, Any]) -> None:
        """Writes a checkpoint whole or not at all; everything but tensors goes in as JSON."""
        import torch

        content = {"format": FORMAT, "state": json.dumps(state), **tensors}
        self._write_atomically(CHECKPOINT, lambda file: torch.save(content, file))

    def load_checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tensors and the state of the last checkpoint; no pickled code is run."""
        import torch

        try:
            content = torch.load(self.checkpoint, weights_only=True)
            found, state = content["format"], json.loads(content["state"])
        except FileNotFoundError as error:
            raise UserError(f"{self.path} holds no checkpoint; is it the run you mean?") from error
        except Exception as error:  # torch raises half a dozen kinds for a damaged file
            raise UserError(
                f"{self.checkpoint} is damaged or of another kind ({type(error).__name__})"
            ) from error
        if found != FORMAT:
            raise UserError(
                f"{self.checkpoint} has format {found}, this version reads format {FORMAT}"
            )
        return content, state

    def append_transitions(self, lines: Iterable[dict[str, Any]]) -> int:
        """Appends one JSON line for each, in one write; returns the size of the file after it."""
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        with self.transitions.open("ab") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            return file.tell()

    def cut_transitions(self, size: int) -> None:
        """Drops what was written after the checkpoint that the run goes on from."""
        with self.transitions.open("ab") as file:
            file.truncate(size)

    def _write_atomically(self, name: str, write: Any) -> None:
        handle, temporary = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path / name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
