"""Things to do later, on one thread of their own."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Timetable:
    """Runs actions when they are due, one after the other; they must not block."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._closed = False

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Has `action` run in so many seconds; the thread starts with the first."""
        due = time.monotonic() + max(0.0, seconds)
        with self._changed:
            if self._closed:
                return
            heapq.heappush(self._entries, (due, next(self._numbers), action))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Forgets what is not yet due."""
        with self._changed:
            self._closed = True
            self._entries.clear()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closed and not self._is_due():
                    left = self._entries[0][0] - time.monotonic() if self._entries else None
                    self._changed.wait(left)
                if self._closed:
                    return
                action = heapq.heappop(self._entries)[2]
            try:
                action()
            except Exception:  # one that fails must not keep the others from their time
                logger.exception("unexpected error in %s", self._name)

    def _is_due(self) -> bool:
        return bool(self._entries) and self._entries[0][0] <= time.monotonic()
