"""Ctrl-C and SIGTERM in a run: the first saves and stops, the second ends the process at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from query_mutator.base.terminal import printable

SIGNALS = (signal.SIGINT, signal.SIGTERM)
EXIT_CODE = 130


class Interrupts:
    """While its block runs, the first signal calls `save` and raises KeyboardInterrupt.

    The work is on the disk before anything that may take long, such as ending what is under way.
    From then on, also after the block, a further signal says `farewell` and ends the process.
    """

    def __init__(self, save: Callable[[], None], farewell: str) -> None:
        self._save, self._farewell = save, printable(farewell)
        self._before: dict[signal.Signals, Any] = {}
        self._saving = self._again = self._stopped = False

    def __enter__(self) -> Interrupts:
        for number in SIGNALS:
            before = signal.getsignal(number)
            if before != signal.SIG_IGN:  # whoever starts a run with `nohup &` wants it so
                self._before[number] = before
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._stopped:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._saving:
            self._again = True  # answered as soon as all is on the disk
            return
        if self._stopped:
            self._leave()
        self._saving = True
        with contextlib.suppress(OSError):  # told by who handles the interruption and saves again
            self._save()
        self._saving, self._stopped = False, True
        if self._again:
            self._leave()
        raise KeyboardInterrupt

    def _leave(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            # Not by print: the interrupted code may be inside of one.
            os.write(sys.stderr.fileno(), f"\n{self._farewell}\n".encode())
        os._exit(EXIT_CODE)
