"""Threads that make calls: as many as were ever needed at once, and not one more."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable


class CallThreads:
    """Does work on threads that are kept.

    An executor starts a thread whenever none is idle *yet*: one that is about to be, having ended
    its call and told of it, does not count. So its threads, each with a connection, become more
    now and then for as long as a run lasts. Here whoever brings work says how much is under way.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._work: deque[Callable[[], object]] = deque()
        self._count = 0
        self._closed = False

    @property
    def count(self) -> int:
        """How many threads there are."""
        return self._count

    def submit(self, work: Callable[[], object], *, under_way: int) -> None:
        """Has a thread do it; `under_way` counts this work and all that has not ended yet.

        Raises RuntimeError when closed, or when not even a first thread is to be had.
        """
        with self._changed:
            if self._closed:
                raise RuntimeError("closed")
            if self._count < under_way:
                self._start()
            self._work.append(work)
            self._changed.notify()

    def close(self) -> None:
        """Takes no more work; the threads end when they have done what they were given."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{self._name}-{self._count}", daemon=True)
        # Where the system has no thread left, those that are there come to the work in their turn.
        with contextlib.suppress(RuntimeError) if self._count else contextlib.nullcontext():
            thread.start()
            self._count += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._work and not self._closed:
                    self._changed.wait()
                if not self._work:
                    return
                work = self._work.popleft()
            work()
