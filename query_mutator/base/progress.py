"""How far a command is, where there is no terminal for a bar: in a log, in a job, in a pipe."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from query_mutator.base.terminal import counted, progress_bar

LINES = 10
"""So many lines at most tell of all that there is to do, and one at its beginning."""


class Doing:
    """A bar on a terminal; elsewhere a line on standard error now and then.

    `bar` is the bar, which does nothing where it is not shown.
    """

    def __init__(self, total: int, done: int, *, doing: str, noun: str) -> None:
        self.bar: Any = progress_bar(total, done, doing=f"{doing} ")
        self._total, self._done = total, done
        self._doing, self._noun = doing, noun
        self._told = self._part()
        if done < total:
            self._tell("")

    def update(self, figures: str) -> None:
        """One more is done; `figures` say what came of them so far."""
        self._done += 1
        self.bar.set_description_str(figures, refresh=False)
        self.bar.update()
        if self._part() > self._told:
            self._told = self._part()
            self._tell(f", {figures}")

    def _part(self) -> int:
        return LINES * self._done // self._total if self._total else LINES

    def _tell(self, figures: str) -> None:
        if self.bar.disable:
            of_all = f"{self._done:,} of {counted(self._total, self._noun)}"
            print(f"{self._doing}: {of_all}{figures}", file=sys.stderr, flush=True)

    def __enter__(self) -> Doing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.bar.close()
