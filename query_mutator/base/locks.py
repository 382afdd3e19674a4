"""One writer at a time: what two processes write to together is mixed up."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.base.files import PARTIAL


def take(handle: int, path: Path, *, wait: bool = False) -> None:
    """Takes an open file or directory for this process, until the handle is closed.

    Where another process has it: waits, or raises `UserError`.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise UserError(f"another process is writing to {path}; wait until it ends") from error


@contextlib.contextmanager
def only_writer(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Keeps a place for this writer, by a lock file beside it that goes when it is done."""
    lock = path.parent / f".{path.name}.lock"
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            take(handle, path, wait=wait)
            # Whoever had it before has removed it, and others may hold another file of this name.
            if os.path.samestat(os.stat(lock), os.fstat(handle)):
                break
            os.close(handle)
        except FileNotFoundError:
            os.close(handle)
        except BaseException:
            os.close(handle)
            raise
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


def left_over(path: Path) -> Iterator[Path]:
    """What killed writers to this place had not finished, seen by its only writer."""
    partial = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}{re.escape(PARTIAL)}")
    for name in os.listdir(path.parent):
        if partial.fullmatch(name):
            yield path.parent / name
