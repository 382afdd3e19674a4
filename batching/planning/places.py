"""Directories that are written whole or not at all, by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from errors import UserError
from training.files import PARTIAL, sync


@contextlib.contextmanager
def written_whole(path: Path, may_be_replaced: Callable[[Path], bool], what: str) -> Iterator[Path]:
    """A directory to fill, which then takes the place of `path`.

    It stands beside its place until it is whole: who is killed leaves what was there before. Who
    writes to the same place waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _only_writer(path):
        if (path.exists() or path.is_symlink()) and not may_be_replaced(path):
            raise UserError(f"{path} is there already and is no {what}; choose another place")
        _remove_left_over(path)
        prefix = f".{path.name}."
        partial = Path(tempfile.mkdtemp(dir=path.parent, prefix=prefix, suffix=PARTIAL))
        try:
            yield partial
            sync(partial)
            before = replaced(path)
            if path.exists():
                shutil.rmtree(before, ignore_errors=True)
                os.rename(path, before)
            os.rename(partial, path)
            sync(path.parent)
            shutil.rmtree(before, ignore_errors=True)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def replaced(path: Path) -> Path:
    """Where the directory stands that another one is about to take the place of."""
    return path.with_name(f".{path.name}.replaced")


def _remove_left_over(path: Path) -> None:
    """Removes what killed writers to this place had not finished: the only writer is this one."""
    left_over = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}{re.escape(PARTIAL)}")
    for name in os.listdir(path.parent):
        if left_over.fullmatch(name):
            shutil.rmtree(path.with_name(name), ignore_errors=True)


@contextlib.contextmanager
def _only_writer(path: Path) -> Iterator[None]:
    """Waits until no other process, and no other thread, writes to this place."""
    lock = path.with_name(f".{path.name}.lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Whoever had it has removed it: others may hold another file of this name by then.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(lock), os.fstat(handle)):
                break
        os.close(handle)
    try:
        yield
    finally:
        os.unlink(lock)
        os.close(handle)
