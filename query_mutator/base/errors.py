"""The two errors that end a command with a line for the person who runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class UserError(Exception):
    """Something the user gave cannot work: one or two lines, exit code 2."""


class ServerUnavailableError(Exception):
    """The model server stopped answering in mid-run: work is saved, exit code 1."""


@contextlib.contextmanager
def refused(what: str) -> Iterator[None]:
    """Turns an error of the system into a line: `what` cannot be done, and why."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {error.strerror}") from error
