"""One writer at a time: what two processes write to together is mixed up."""

from __future__ import annotations

import fcntl
from pathlib import Path

from errors import UserError


def take(handle: int, path: Path) -> None:
    """Takes an open file or directory for this process, until the handle is closed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UserError(f"another process is writing to {path}; wait until it ends") from error
