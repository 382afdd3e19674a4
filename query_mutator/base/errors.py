"""The two errors that end a command with a line for the person who runs it."""

from __future__ import annotations


class UserError(Exception):
    """Something the user gave cannot work: one or two lines, exit code 2."""


class ServerUnavailableError(Exception):
    """The model server stopped answering in mid-run: work is saved, exit code 1."""
