"""Servers that are left alone: probed until they answer, and given up after a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from query_mutator.models.backend import Backend
from query_mutator.models.calls import OUTAGE, CallFailedError, Failure
from query_mutator.models.jobs import Job, Lanes
from query_mutator.models.settings import ModelSettings
from query_mutator.models.timetable import Timetable

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outage:
    """Calls wait, since none of the servers that could answer them does."""

    server: str
    reason: str
    waited_s: float
    gives_up_after_s: float

    def __str__(self) -> str:
        verb = "do" if " and " in self.server else "does"
        return (
            f"paused {clock(self.waited_s)}: {self.server} {verb} not answer ({self.reason}), "
            f"gives up after {clock(self.gives_up_after_s)}"
        )


class Outages:
    """Knows which calls wait for nothing but servers that are down.

    Methods named as being under the lock are called by whoever holds it.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        lanes: Lanes,
        lock: threading.Lock,
        settings: ModelSettings,
        *,
        on_return: Callable[[], None],
        on_overdue: Callable[[Job, Failure], None],
    ) -> None:
        self.max_outage_s = settings.max_outage_s
        self._settings, self._pauses = settings, settings.pauses
        self._timetable = Timetable("model-outages")
        self._backends, self._lanes, self._lock = backends, lanes, lock
        self._probes = ThreadPoolExecutor(len(backends) or 1, "model-probe")
        self._on_return, self._on_overdue = on_return, on_overdue
        self._told: set[Backend] = set()
        self._gone = ""
        self._look_planned = False

    def close(self) -> None:
        """Forgets what is planned; a probe under way ends by itself."""
        self._timetable.close()
        self._probes.shutdown(wait=False)

    def why_gone(self) -> str:
        """Why calls were given up, while no server they need has come back; else ""."""
        with self._lock:
            return self._gone

    def current(self) -> Outage | None:
        """What calls wait for, if any do."""
        with self._lock:
            for purpose, model, _ in self._lanes.waiting_lanes():
                down = self._all_down(purpose, model)
                if down:
                    silent = self._silent_since(down)
                    return Outage(
                        " and ".join(b.name for b in down),
                        down[-1].why_down,
                        time.monotonic() - silent,
                        self.max_outage_s,
                    )
        return None

    def begin(self, backend: Backend, job: Job, failure: Failure, *, alone: bool) -> None:
        """Leaves a server alone, from the failure of `job` on; under the lock."""
        backend.went_down(failure)
        if not alone:
            logger.warning("%s is left alone until it answers: %s", backend.name, failure.reason)
            self._told.add(backend)
        pause_s, timeout_s = self._pauses.probe_first_s, backend.http.timeout_s
        self._timetable.after(pause_s, lambda: self._probe_due(backend, job, pause_s, timeout_s))
        if self.max_outage_s:
            self._timetable.after(self._pauses.told_after_s, self._tell)
            waited_s = time.monotonic() - self._silent_since([backend])
            self._look_in(self.max_outage_s - waited_s)

    def _look_in(self, seconds: float) -> None:
        """Has the time of those that wait looked at again; one look at a time is planned."""
        if not self._look_planned:
            self._look_planned = True
            self._timetable.after(seconds, self._look)

    def _look(self) -> None:
        with self._lock:
            self._look_planned = False
        self.give_up_overdue()

    def give_up_overdue(self) -> None:
        """Ends the calls whose servers have all been silent for too long.

        The others are looked at again when their time is over: a late answer may have begun the
        silence anew.
        """
        if not self.max_outage_s or all(backend.up for backend in self._backends):
            return
        ended: list[tuple[Job, Failure]] = []
        with self._lock:
            for lane in self._lanes.waiting_lanes(ahead_too=True):
                down = self._all_down(lane[0], lane[1])
                if not down:
                    continue
                left_s = self._silent_since(down) + self.max_outage_s - time.monotonic()
                if left_s > 0:
                    self._look_in(left_s)
                    continue
                names = " and ".join(backend.name for backend in down)
                verb = "have" if len(down) > 1 else "has"
                self._gone = (
                    f"{names} {verb} not answered for {clock(self.max_outage_s)} "
                    f"({down[-1].why_down})"
                )
                ended += [(job, Failure(OUTAGE, self._gone)) for job in self._lanes.drain(lane)]
        for job, failure in ended:
            self._on_overdue(job, failure)

    def _all_down(self, purpose: str, model: str) -> list[Backend]:
        """The servers for a kind of call, if none of them is up."""
        serving = [b for b in self._backends if b.serves(purpose, model)]
        gone = all(not b.up for b in serving) and any(b.has_answered for b in serving)
        return serving if gone else []

    def _silent_since(self, down: Sequence[Backend]) -> float:
        return max(backend.silent_since or 0.0 for backend in down)

    def _tell(self) -> None:
        """Says that calls wait, once for each time that a server is gone."""
        outage = self.current()
        with self._lock:
            silent = {backend for backend in self._backends if not backend.up}
            untold = silent - self._told
            if outage is None and untold:  # those that will wait are still under way
                self._timetable.after(self._pauses.told_after_s, self._tell)
            if outage is None or not untold:
                return
            self._told |= silent
        logger.warning("%s", outage)

    def _probe_due(self, backend: Backend, job: Job, pause_s: float, timeout_s: float) -> None:
        """Sends a probe if there is a place for it: a server may still be at work on lost calls."""
        with self._lock:
            has_room = job.beside_limit or backend.room(job.model, job.max_workers) > 0
            if has_room:
                backend.take_place(job.model)
        if not has_room:
            self._timetable.after(
                self._pauses.probe_first_s,
                lambda: self._probe_due(backend, job, pause_s, timeout_s),
            )
            return
        try:
            self._probes.submit(self._probe, backend, job, pause_s, timeout_s)
        except RuntimeError:  # closed in the meantime
            return

    def _probe(self, backend: Backend, job: Job, pause_s: float, timeout_s: float) -> None:
        """Asks for a little: a health page can be green while nothing answers."""
        kind = ""
        try:
            num_ctx = self._settings.num_ctx
            backend.ask_little(job.purpose, job.model, num_ctx=num_ctx, timeout_s=timeout_s)
            back, warm = True, True
        except CallFailedError as error:
            # A request that is refused for what it asks shows the server at work.
            back, warm, kind = not error.retryable, False, error.failure.kind
        except Exception:
            logger.exception("unexpected error when probing %s", backend.name)
            back = warm = False
        with self._lock:
            if kind == "timeout":
                self.hold_place(backend, job.model)
            else:
                backend.leave_place(job.model)
            if back:
                waited_s = time.monotonic() - self._silent_since([backend])
                backend.came_back(job.model if warm else None)
                was_told = backend in self._told
                self._told.discard(backend)
                self._gone = ""
        if back and was_told:
            logger.warning("%s answers again after %s", backend.name, clock(waited_s))
        self._on_return()  # the probe's place is free, whatever came of it
        if back:
            return
        pause_s = min(2 * pause_s, self._pauses.probe_limit_s)
        timeout_s = min(2 * timeout_s, max(timeout_s, self._settings.load_timeout_s))
        self._timetable.after(pause_s, lambda: self._probe_due(backend, job, pause_s, timeout_s))

    def hold_place(self, backend: Backend, model: str) -> None:
        """Keeps the place of a call that timed out for a while; under the lock.

        A server may not notice that its client has gone (ollama#11889): what takes the place at
        once would come on top of what it still works on.
        """
        number = backend.hold_place(model)
        self._timetable.after(backend.hold_s, lambda: self._free(backend, number))

    def _free(self, backend: Backend, number: int) -> None:
        with self._lock:
            backend.free_held(number)
        self._on_return()


def clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock(42.4), clock(600)
    ('0:42', '10:00')
    """
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
