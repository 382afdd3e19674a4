"""Files that are written whole or not at all, and that only the user can read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"
"""How the name of a file ends that is not yet whole."""
BINARY = getattr(os, "O_BINARY", 0)
"""For `os.open`: Windows would change the ends of lines."""


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file whole or not at all, on the disk and not only in its cache."""
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        if isinstance(error, OSError) and error.filename is None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    sync(path.parent)


@contextlib.contextmanager
def replaced_directory(path: Path) -> Iterator[Path]:
    """A directory to write to, which takes the place of `path` when all is written, or not at all.

    Whoever writes it is its only writer.
    """
    new, old = (path.with_name(f".{path.name}.{state}") for state in ("new", "old"))

    def tidy() -> None:
        if old.is_dir() and not path.exists():  # interrupted between the two renames
            old.rename(path)
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)

    tidy()
    new.mkdir(mode=0o700)
    try:
        yield new
        if path.exists():
            path.rename(old)
        new.rename(path)
    finally:
        tidy()


def remove_partial(directory: Path) -> None:
    """Removes what a killed process had not finished writing."""
    for path in directory.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)


def append(path: Path, data: bytes, *, at: int) -> int:
    """Appends to a file that is `at` bytes long; returns its length after that.

    What is there beyond `at` was not meant to stay. Nothing is left of data that does not fit.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | BINARY, 0o600)
    try:
        if os.fstat(handle).st_size < at:
            raise OSError(errno.EIO, "what was written to it before has gone")
        try:
            if at < os.fstat(handle).st_size:
                os.ftruncate(handle, at)
            os.lseek(handle, at, os.SEEK_SET)
            written = 0
            while written < len(data):
                written += os.write(handle, data[written:])
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, at)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(handle)
    return at + len(data)


def cut(path: Path, size: int) -> None:
    """Drops what stands after the first `size` bytes of a file that may be missing."""
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)


def size_of(path: Path) -> int:
    """The length of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def sync(path: Path) -> None:
    """Has a file or directory reach the disk; not every file system can do so."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)  # for Windows
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
