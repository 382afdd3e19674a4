"""What the commands share: plain text on the terminal, and leaving without waiting."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import unicodedata
from typing import NoReturn

from errors import UserError


def leave(code: int) -> None:
    """Ends the process at once: a thread in mid-call would hold it until the call's deadline."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line, without the whole usage."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (--help lists all flags)")


def printable(text: str) -> str:
    """The text without control characters, which could drive the terminal.

    >>> printable("a\\x1b[31mb\\nc")
    'a[31mb c'
    """
    kept = [" " if character in "\n\t\r" else character for character in text]
    return "".join(c for c in kept if unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co"})


class TerminalHandler(logging.Handler):
    """Log messages on standard error, above a progress bar that may be there."""

    def emit(self, record: logging.LogRecord) -> None:
        from tqdm import tqdm

        tqdm.write(printable(self.format(record)), file=sys.stderr)


def show_warnings() -> None:
    """Has the project's warnings appear on the terminal, one line each."""
    handler = TerminalHandler()
    handler.setFormatter(_LowerCaseLevel("%(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


class _LowerCaseLevel(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        record.levelname = record.levelname.lower()
        return super().format(record)
