"""Sends each call to a server that has room for it, and moves it on where a server fails."""

from __future__ import annotations

import heapq
import itertools
import logging
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from model_client.backend import Backend, BackendStatus
from model_client.calls import CallFailedError, Failure, Reply
from model_client.limits import MOST_AT_ONCE, Ticket

logger = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.5
BACKOFF_LIMIT_S = 8.0
BACKOFF_JITTER = 0.25
RETRY_AFTER_LIMIT_S = 60.0
PROBE_FIRST_S = 0.5
PROBE_LIMIT_S = 15.0

Priority = tuple[int, ...]
Lane = tuple[str, str, int | None]
"""Purpose, model and calls at once of the jobs that can go to the same servers."""
CLOSED = Failure("closed", "the client was closed")


@dataclass(frozen=True)
class Done:
    """How a job ended: what its work gave, or why not."""

    value: Any
    failure: Failure | None
    latency_s: float
    attempts: int


@dataclass(eq=False)
class Job:
    """Something to ask of a server; of two that wait, the lesser priority goes first."""

    purpose: str
    model: str
    work: Callable[[Backend, float | None], Any]
    """One attempt on a server, within seconds where they are given; raises `CallFailedError`."""
    done: Callable[[Done], None]
    max_workers: int | None = None
    """Calls under way on a server for this job to join them; None leaves it to the server."""
    priority: Priority = ()
    attempts: int = 0
    started: float | None = None
    avoid: Backend | None = None

    @property
    def lane(self) -> Lane:
        return self.purpose, self.model, self.max_workers


@dataclass
class _Start:
    job: Job
    backend: Backend
    ticket: Ticket
    cold: bool


class _Lanes:
    """Waiting jobs, by what a server must have to take them."""

    def __init__(self) -> None:
        self._heaps: dict[Lane, list[tuple[Priority, int, Job]]] = defaultdict(list)
        self._numbers = itertools.count()
        self._jobs: dict[Lane, set[Job]] = defaultdict(set)

    def push(self, job: Job) -> None:
        self._jobs[job.lane].add(job)
        heapq.heappush(self._heaps[job.lane], (job.priority, next(self._numbers), job))

    def hurry(self, job: Job, priority: Priority) -> None:
        """Moves a job forward, if it still waits; its old entry goes when it comes up."""
        if priority < job.priority and job in self._jobs[job.lane]:
            job.priority = priority
            self.push(job)

    def heads(self) -> list[Job]:
        """The next job of each lane, the most urgent first."""
        first = []
        for heap in self._heaps.values():
            while heap and self._is_stale(*heap[0]):
                heapq.heappop(heap)
            first += heap[:1]
        return [job for _, _, job in sorted(first, key=lambda entry: entry[:2])]

    def _is_stale(self, priority: Priority, _: int, job: Job) -> bool:
        return job not in self._jobs[job.lane] or priority != job.priority

    def pop(self, job: Job) -> None:
        heapq.heappop(self._heaps[job.lane])
        self._jobs[job.lane].remove(job)

    def waiting(self, backend: Backend) -> Counter[str]:
        """How many jobs wait that this server could do, by model."""
        found: Counter[str] = Counter()
        for (purpose, model, _), jobs in self._jobs.items():
            if backend.serves(purpose, model):
                found[model] += len(jobs)
        return found

    def clear(self) -> list[Job]:
        jobs = [job for lane in self._jobs.values() for job in lane]
        self._heaps.clear()
        self._jobs.clear()
        return jobs


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
        self._lanes = _Lanes()
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
            job.done(Done(None, failure, 0.0, 0))
        self._launch(starts)

    def hurry(self, job: Job, priority: Priority) -> None:
        """Gives a job that still waits the priority of somebody who waits for it too."""
        with self._lock:
            self._lanes.hurry(job, priority)

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
            job.done(Done(None, CLOSED, 0.0, job.attempts))
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _in_flight(self) -> int:
        return sum(backend.in_flight.total() for backend in self.backends)

    def _launch(self, starts: Sequence[_Start]) -> None:
        for start in starts:
            try:
                self._threads.submit(self._serve, start)
            except RuntimeError:  # closed in the meantime
                start.job.done(Done(None, CLOSED, 0.0, start.job.attempts))

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
        """The servers that are up and have the model; the one that just failed it only if alone."""
        able = [b for b in self.backends if b.up and b.serves(job.purpose, job.model)]
        return [b for b in able if b is not job.avoid] or able

    def _best(self, job: Job) -> Backend | None:
        """The server with the most room for the job, if any has some."""
        best, most = None, 0
        for backend in self._able(job):
            free = backend.free(job.model, job.max_workers)
            if free > most and self._is_its_turn(backend, job):
                best, most = backend, free
        return best

    def _is_its_turn(self, backend: Backend, job: Job) -> bool:
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
            if done is not None:
                job.done(done)
            start = starts[0] if starts else None
            self._launch(starts[1:])

    def _attempt_until_done(self, start: _Start) -> Done | None:
        """How the job ended; None where it is to be tried on another server."""
        job, backend = start.job, start.backend
        job.started = job.started or time.monotonic()
        while True:
            job.attempts += 1
            sent = time.monotonic()
            failure: Failure
            try:
                value = job.work(backend, self.load_timeout_s if start.cold else None)
            except CallFailedError as error:
                failure, retry_s = error.failure, None
                if error.retryable and not self._closing.is_set():
                    retry_s = backoff_s(job.attempts, error.retry_after_s)
            except Exception as error:  # a bug in a dialect must not leave its caller waiting
                failure, retry_s = Failure("bug", f"{type(error).__name__}: {error}"), None
                logger.exception("unexpected error in a model call")
            else:
                now = time.monotonic()
                reply = value if isinstance(value, Reply) else Reply("")
                with self._lock:
                    changed = backend.answered(job.model, start.ticket, reply, now - sent)
                if changed:
                    self._tell_grouping(backend)
                return Done(value, None, now - job.started, job.attempts)
            if retry_s is not None and self._goes_elsewhere(start, failure):
                return None
            if retry_s is None or job.attempts > self.retries or self._closing.wait(retry_s):
                with self._lock:
                    backend.failed(job.model, start.ticket)
                return Done(None, failure, time.monotonic() - job.started, job.attempts)

    def _goes_elsewhere(self, start: _Start, failure: Failure) -> bool:
        """Whether another server can take the job over; one that seems dead is left alone."""
        job, backend = start.job, start.backend
        with self._lock:
            others = [
                other
                for other in self.backends
                if other is not backend and other.up and other.serves(job.purpose, job.model)
            ]
            # Each server may fail a call once more than --retries, or one that is up, dies and
            # comes back could pass it round for ever.
            if not others or job.attempts > self.retries + len(self.backends):
                return False
            backend.failed(job.model, start.ticket)
            job.avoid = backend
            goes_down = backend.up and backend.is_suspect(failure)
            if goes_down:
                backend.went_down()
        if goes_down:
            logger.warning("%s is left alone until it answers: %s", backend.name, failure.reason)
            threading.Thread(target=self._probe, args=(backend, job), daemon=True).start()
        return True

    def _probe(self, backend: Backend, job: Job) -> None:
        """Asks for a little until it comes: a health page can be green while nothing answers."""
        pause_s = PROBE_FIRST_S
        while not self._closing.wait(pause_s):
            pause_s = min(2 * pause_s, PROBE_LIMIT_S)
            try:
                backend.ask_little(
                    job.purpose, job.model, num_ctx=self.num_ctx, timeout_s=self.load_timeout_s
                )
            except CallFailedError:
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
