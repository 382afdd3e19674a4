"""One writer at a time: what two processes write to together is mixed up."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from query_mutator.base.errors import UserError
from query_mutator.base.files import PARTIAL

LOCK = ".lock"
"""The lock file within a directory."""


@contextlib.contextmanager
def only_writer(path: Path, *, within: bool = False, wait: bool = False) -> Iterator[None]:
    """Keeps a place for this writer, by a lock file beside it, or `within` a directory.

    Where another process has it: waits, or raises `UserError`. The file goes when the writer is
    done; one that a killed process has left keeps nobody out.
    """
    lock = (path / LOCK if within else path.parent / f".{path.name[:200]}.lock").absolute()
    lock.parent.stat()  # `FileLock` would make a directory that is missing
    taken = FileLock(lock, mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        taken.acquire(timeout=-1 if wait else 0)
    except Timeout as error:
        raise UserError(f"another process is writing to {path}; wait until it ends") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # on Windows it cannot go before it is released
            lock.unlink()
        taken.release()


def left_over(path: Path) -> Iterator[Path]:
    """What killed writers to this place had not finished, seen by its only writer."""
    partial = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}{re.escape(PARTIAL)}")
    for name in os.listdir(path.parent):
        if partial.fullmatch(name):
            yield path.parent / name
