"""What the commands share: plain text on the terminal, errors in a line, a quick way out."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import unicodedata
from collections.abc import Callable
from typing import NoReturn

from errors import ServerUnavailableError, UserError

LONGEST_LINE = 500


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line, without the whole usage."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (--help lists all flags)")


def say_error(error: object) -> None:
    """Prints an error as one or two lines, whatever text it quotes."""
    lines = str(error).split("\n")
    if len(lines) > 2:
        lines = [" ".join(lines[:-1]), lines[-1]]
    shown = [printable(line) for line in lines]
    shown = [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…" for line in shown]
    print("error: " + "\n".join(shown), file=sys.stderr)


def exit_code(command: Callable[[], int]) -> int:
    """Runs a command; what went wrong is said in a line or two and becomes the exit code."""
    try:
        code = command()
        if sys.stdout:
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # a reader that has gone away, as in `| head`, is no error
        return 0
    except UserError as error:
        say_error(error)
        return 2
    except ServerUnavailableError as error:
        say_error(f"the model server stopped answering: {error}")
        return 1
    except FloatingPointError as error:
        say_error(error)
        return 1
    except OSError as error:
        say_error(f"{error.strerror or error}: {error.filename}" if error.filename else error)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def leave(code: int) -> NoReturn:
    """Ends the process at once: a thread in mid-call would hold it until the call's deadline."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    os._exit(code)


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
