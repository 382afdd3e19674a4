"""Sends each call to a server that has room for it, and moves it on where a server fails."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from model_client.backend import Backend, BackendStatus
from model_client.calls import CallFailedError, Failure, Reply
from model_client.jobs import Done, Job, Lanes, Priority
from model_client.limits import MOST_AT_ONCE, Ticket

logger = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.5
BACKOFF_LIMIT_S = 8.0
BACKOFF_JITTER = 0.25
RETRY_AFTER_LIMIT_S = 60.0
PROBE_FIRST_S = 0.5
PROBE_LIMIT_S = 15.0

CLOSED = Failure("closed", "the client was closed")


@dataclass
class _Start:
    job: Job
    backend: Backend
    ticket: Ticket
    cold: bool
    sent: float = 0.0


class Dispatcher:
    """Threads that do I/O and nothing else, one for each call under way."""

    def __init__(
        self,
        backends: Sequence[Backend],
        *,
        retries: int = 2,
        load_timeout_s: float = 600.0,
        num_ctx: int = 2048,
    ) -> None:
        self.backends = list(backends)
        self.retries = retries
        self.load_timeout_s = load_timeout_s
        self.num_ctx = num_ctx
        self.max_in_flight = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._lanes = Lanes()
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, "model-call")

    @property
    def in_flight(self) -> int:
        with self._lock:
            return self._in_flight()

    def put(self, job: Job) -> None:
        """Takes a job on; its `done` is called when it has ended, from any thread."""
        failure = None
        with self._lock:
            if self._closing.is_set():
                failure = CLOSED
            elif not any(backend.serves(job.purpose, job.model) for backend in self.backends):
                failure = Failure("not_found", f"no server is asked for the model {job.model}")
            else:
                self._lanes.push(job)
            starts = self._matched()
        if failure is not None:
            self._end(job, Done(None, failure, 0.0, 0))
        self._launch(starts)

    def hurry(self, job: Job, priority: Priority) -> None:
        """Gives a job that still waits the priority of somebody who waits for it too."""
        with self._lock:
            self._lanes.hurry(job, priority)
            starts = self._matched()
        self._launch(starts)

    def status(self) -> list[BackendStatus]:
        """How each server fares."""
        with self._lock:
            return [backend.status() for backend in self.backends]

    def close(self) -> None:
        """Ends what has not started; what waits for another attempt gives up."""
        self._closing.set()
        with self._lock:
            waiting = self._lanes.clear()
        for job in waiting:
            self._end(job, Done(None, CLOSED, 0.0, job.attempts))
        self._threads.shutdown(wait=False)

    def _in_flight(self) -> int:
        return sum(backend.in_flight.total() for backend in self.backends)

    def _launch(self, starts: Sequence[_Start]) -> None:
        for start in starts:
            try:
                self._threads.submit(self._serve, start)
            except RuntimeError:  # closed in the meantime
                self._end(start.job, Done(None, CLOSED, 0.0, start.job.attempts))

    def _matched(self) -> list[_Start]:
        """Pairs waiting jobs with servers that have room, until one or the other runs out."""
        starts: list[_Start] = []
        found = True
        while found:
            found = False
            for job in self._lanes.heads():
                backend = self._best(job)
                if backend is not None:
                    self._lanes.pop(job)
                    cold = backend.is_cold(job.model)
                    starts.append(_Start(job, backend, backend.sent(job.model), cold))
                    found = True
                    break
        self.max_in_flight = max(self.max_in_flight, self._in_flight())
        return starts

    def _able(self, job: Job) -> list[Backend]:
        """The servers that have the model and are up; if all are down, they are asked all the same:
        a call that fails says why, one that waits says nothing.
        """
        serving = [b for b in self.backends if b.serves(job.purpose, job.model)]
        return [b for b in serving if b.up] or serving

    def _best(self, job: Job) -> Backend | None:
        """The server to send the job to, if any has room: one that has not failed it, else the one
        that has failed it least, with the most room.
        """
        best, rank = None, (0, 0)
        for backend in self._able(job):
            free = 1 if job.beside_limit else backend.free(job.model, job.max_workers)
            if free > 0 and self._is_its_turn(backend, job):
                own = (-job.failed_on[backend], free)
                if best is None or own > rank:
                    best, rank = backend, own
        return best

    def _is_its_turn(self, backend: Backend, job: Job) -> bool:
        if job.is_ahead:
            return backend.goes_on_with(job.model)
        if not backend.grouped:
            return True
        return backend.turn_of(job.model, self._lanes.waiting(backend), job.max_workers)

    def _serve(self, start: _Start | None) -> None:
        """Makes one call after the other for as long as there are any to make."""
        while start is not None:
            job = start.job
            done = self._attempt_until_done(start)
            with self._lock:
                if done is None and not self._closing.is_set():
                    self._lanes.push(job)
                elif done is None:
                    done = Done(None, CLOSED, 0.0, job.attempts)
                starts = self._matched()
            self._launch(starts[1:])
            if done is not None:
                self._end(job, done)
            start = starts[0] if starts else None

    def _end(self, job: Job, done: Done) -> None:
        try:
            job.done(done)
        except Exception:  # whoever is told may fail; the thread has other calls to make
            logger.exception("unexpected error after a model call")

    def _attempt_until_done(self, start: _Start) -> Done | None:
        """How the job ended; None where it is to be tried on another server."""
        job, backend = start.job, start.backend
        job.started = job.started or time.monotonic()
        while True:
            if self._closing.is_set():
                return self._failed(start, CLOSED)
            job.attempts += 1
            start.sent = time.monotonic()
            try:
                value = job.work(backend, self.load_timeout_s if start.cold else None)
            except CallFailedError as error:
                if not error.retryable:
                    return self._failed(start, error.failure)
                failure = error.failure
                pause_s = backoff_s(job.failed_on[backend] + 1, error.retry_after_s)
            except Exception as error:  # a bug in a dialect must not leave its caller waiting
                logger.exception("unexpected error in a model call")
                return self._failed(start, Failure("bug", f"{type(error).__name__}: {error}"))
            else:
                now = time.monotonic()
                reply = value if isinstance(value, Reply) else Reply("")
                with self._lock:
                    changed = backend.answered(job.model, start.ticket, reply, now - start.sent)
                if changed:
                    self._tell_grouping(backend)
                return Done(value, None, now - job.started, job.attempts)
            job.failed_on[backend] += 1
            others = self._others(start, failure)
            if min(job.failed_on[b] for b in (*others, backend)) > self.retries:
                return self._failed(start, failure)
            fresh = any(job.failed_on[other] < job.failed_on[backend] for other in others)
            if not fresh:
                self._closing.wait(pause_s)
            with self._lock:
                if others:
                    backend.failed(job.model, start.ticket)
                    return None
                # It waits with its place: on the only server, retries add no load.
                start.ticket = backend.sent_again(job.model, start.ticket)

    def _failed(self, start: _Start, failure: Failure) -> Done:
        with self._lock:
            start.backend.failed(start.job.model, start.ticket)
        since = start.job.started or start.sent
        return Done(None, failure, time.monotonic() - since, start.job.attempts)

    def _others(self, start: _Start, failure: Failure) -> list[Backend]:
        """The servers that can take a job over; if there are any, one that seems dead is left."""
        job, backend = start.job, start.backend
        with self._lock:
            others = [b for b in self._able(job) if b is not backend and b.up]
            suspect = backend.is_suspect(failure, start.sent)
            goes_down = bool(others) and backend.up and suspect
            if goes_down:
                backend.went_down()
        if goes_down:
            logger.warning("%s is left alone until it answers: %s", backend.name, failure.reason)
            threading.Thread(target=self._probe, args=(backend, job), daemon=True).start()
        return others

    def _probe(self, backend: Backend, job: Job) -> None:
        """Asks for a little until it comes: a health page can be green while nothing answers."""
        pause_s, timeout_s = PROBE_FIRST_S, backend.http.timeout_s
        while not self._closing.wait(pause_s):
            try:
                backend.ask_little(
                    job.purpose, job.model, num_ctx=self.num_ctx, timeout_s=timeout_s
                )
            except CallFailedError:
                pause_s = min(2 * pause_s, PROBE_LIMIT_S)
                timeout_s = min(2 * timeout_s, max(timeout_s, self.load_timeout_s))
                continue
            except Exception:
                logger.exception("unexpected error when probing %s", backend.name)
                continue
            with self._lock:
                backend.came_back(job.model)
                starts = self._matched()
            logger.warning("%s answers again", backend.name)
            self._launch(starts)
            return

    def _tell_grouping(self, backend: Backend) -> None:
        if backend.grouped:
            logger.warning(
                "%s holds one model at a time: calls are grouped by model to spare it the loads",
                backend.name,
            )
        else:
            logger.warning("%s holds its models together: no more grouping", backend.name)


def backoff_s(attempt: int, retry_after_s: float | None) -> float:
    """How long to wait after attempt number `attempt`: what the server asks, or doubling waits."""
    if retry_after_s is not None:
        return min(retry_after_s, RETRY_AFTER_LIMIT_S)
    wait_s = min(BACKOFF_FIRST_S * 2.0 ** (attempt - 1), BACKOFF_LIMIT_S)
    # Jitter spreads the retries of many threads; nothing learned depends on it: it has no seed.
    return wait_s * random.uniform(1 - BACKOFF_JITTER, 1)
