"""What the commands share: plain text on the terminal, errors in a line, a quick way out."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import sys
import traceback
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TextIO, cast

from query_mutator.base.errors import ServerUnavailableError, UserError

LONGEST_LINE = 500
OWN_PACKAGES = ("query_mutator", "ppo", "batching", "")
BREAKS = "\n\t\r\v\f\x85\u2028\u2029"
DRIVING = {"Cc", "Cf", "Cs", "Co"}
"""Control characters, invisible ones that turn text around, halves of others, private ones."""


def command_line(name: str) -> str:
    """How this user types a command: as installed, or as a script of the checkout."""
    folder, script = os.path.split(sys.argv[0])
    if script.startswith("query-mutator"):
        return f"query-mutator {name}"
    if script == "__main__.py" and os.path.basename(folder) == "query_mutator":
        return f"python -m query_mutator {name}"
    if name == "batching":
        return "python -m batching"
    return "python mutate_query.py" if name == "mutate" else f"python {name}_query_mutator.py"


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line, without the whole usage."""

    def error(self, message: str) -> NoReturn:
        _, _, names = message.partition(" required: ")
        for action in self._actions if names else ():
            if action.choices and not action.option_strings and action.dest in names.split(", "):
                message += f": {', '.join(map(str, action.choices))}"
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
    """Runs a command; what went wrong is said in a line or two and becomes the exit code.

    Until it ends, nothing that is written can drive the terminal, whoever writes it.
    """
    with plain_output():
        return _exit_code(command)


def _exit_code(command: Callable[[], int]) -> int:
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
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OWN_PACKAGES:
            traceback.print_exc()
            return 1
        say_error(
            f"{sys.executable} has no {error.name}, which is needed here.\n"
            "In a checkout: `make setup`, then .venv/bin/python in place of python"
        )
        return 2
    except Exception:  # a bug; its traceback may quote anything, so it is printed in here
        traceback.print_exc()
        return 1


def as_main(run: Callable[[Sequence[str] | None], int]) -> Callable[..., int]:
    """A command that returns its exit code, from one that raises its errors."""

    def main(argv: Sequence[str] | None = None) -> int:
        return exit_code(lambda: run(argv))

    return main


def leave(code: int) -> NoReturn:
    """Ends the process at once: a thread in mid-call would hold it until the call's deadline."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    os._exit(code)


def printable(text: str) -> str:
    """The text on one line, without the characters that could drive the terminal.

    >>> printable("a\\x1b[31mb\\nc")
    'a[31mb c'
    """
    if text.isprintable():
        return text
    kept = [" " if character in BREAKS else character for character in text]
    return "".join(c for c in kept if unicodedata.category(c) not in DRIVING)


def without_passwords(text: str) -> str:
    """The text without what stands before the @ of an address: what is written is passed on.

    >>> without_passwords("--server http://me:secret@host:1/v1")
    '--server http://…@host:1/v1'
    """
    return re.sub(r"(://)[^/\s'\"]*@", r"\1…@", text)


class PlainStream:
    """A text stream that drops what could drive a terminal; only lines and their bar remain.

    The second fence: texts of others go through `printable` where they are quoted, and this one
    catches what was forgotten, in libraries and in tracebacks too.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if not text.isprintable():
            # tqdm draws its bar with a carriage return at the start of what it writes.
            front, back = ("\r" * text.startswith("\r"), "\r" * (text[1:].endswith("\r")))
            inner = text[len(front) : len(text) - len(back)]
            text = front + "\n".join(map(printable, inner.split("\n"))) + back
        self._stream.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def plain_output() -> Iterator[None]:
    """Puts a `PlainStream` before standard output and standard error."""
    before = sys.stdout, sys.stderr
    if isinstance(sys.stdout, PlainStream):
        yield
        return
    with contextlib.suppress(AttributeError):  # a code page of Windows lacks what a text may have
        cast("Any", sys.stdout).reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (
        cast("TextIO", PlainStream(stream)) if stream else stream for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def counted(number: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "question"), counted(1200, "question"), counted(2, "batch")
    ('1 question', '1,200 questions', '2 batches')
    """
    ending = "" if number == 1 else "es" if noun.endswith("batch") else "s"
    return f"{number:,} {noun}{ending}"


def progress_bar(
    total: int, done: int, *, doing: str = "", unit: str = "", smoothing: float = 0.3
) -> Any:
    """A bar on standard error, of which `done` is filled; where that is no terminal, none."""
    from tqdm import tqdm

    figures = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}"
    return tqdm(
        total=total,
        initial=done,
        disable=None,
        dynamic_ncols=True,
        smoothing=smoothing,
        bar_format=f"{doing}{figures}{unit} [{{elapsed}}<{{remaining}}] {{desc}}",
    )


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
