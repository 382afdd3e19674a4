"""The two errors that end a command with a line for the person who runs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class UserError(Exception):
    """Something the user gave cannot work: one or two lines, exit code 2."""


class ServerUnavailableError(Exception):
    """The model server stopped answering in mid-run: work is saved, exit code 1."""


NO_MEMORY = ("allocate memory", "out of memory", "not enough memory", "bad_alloc")
"""How libraries say that there is none left: torch in a RuntimeError."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory has run out, the processor's or a GPU's.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("of another shape"))
    (True, False)
    """
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(words in text for words in NO_MEMORY)


@contextlib.contextmanager
def refused(what: str) -> Iterator[None]:
    """Turns an error of the system into a line: `what` cannot be done, and why."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {error.strerror}") from error
