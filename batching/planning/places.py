"""Directories that are written whole or not at all, by one process at a time."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.base.files import PARTIAL, sync
from query_mutator.base.locks import left_over, only_writer


@contextlib.contextmanager
def written_whole(path: Path, may_be_replaced: Callable[[Path], bool], what: str) -> Iterator[Path]:
    """A directory to fill, which then takes the place of `path`.

    It stands beside its place until it is whole: who is killed leaves what was there before. Who
    writes to the same place waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(path, wait=True):
        if (path.exists() or path.is_symlink()) and not may_be_replaced(path):
            raise UserError(f"{path} is there already and is no {what}; choose another place")
        for unfinished in left_over(path):
            shutil.rmtree(unfinished, ignore_errors=True)
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
