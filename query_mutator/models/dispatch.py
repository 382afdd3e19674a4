"""Sends each call to a server that has room for it, and moves it on where a server fails."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from query_mutator.models.backend import Backend, BackendStatus
from query_mutator.models.breaker import nothing_listens
from query_mutator.models.calls import CallFailedError, Failure, Outcome, Reply
from query_mutator.models.decisions import Decision, Step, View, decide
from query_mutator.models.jobs import Job, Lanes, Priority
from query_mutator.models.limits import Ticket
from query_mutator.models.outages import Outages
from query_mutator.models.settings import ModelSettings
from query_mutator.models.threads import CallThreads

logger = logging.getLogger(__name__)

PUT_BACK_AT_MOST = 3
"""A call that itself brings a server down, each time that it comes, must fail in the end."""

CLOSED = Failure("closed", "the client was closed")


@dataclass
class _Start:
    job: Job
    backend: Backend
    ticket: Ticket
    cold: bool
    sent: float = 0.0


class Dispatcher:
    """Threads that do I/O and nothing else, one for each call under way.

    While every server that could take a job is down, it waits for one to come back, for as long as
    `max_outage_s`; with 0 it does not wait. A model that has never answered is not waited for.
    """

    def __init__(self, backends: Sequence[Backend], settings: ModelSettings) -> None:
        self.backends = list(backends)
        self.retries, self.load_timeout_s = settings.retries, settings.load_timeout_s
        self._pauses = settings.pauses
        self.max_in_flight = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._lanes = Lanes()
        self._threads = CallThreads("model-call")
        self.outages = Outages(
            self.backends,
            self._lanes,
            self._lock,
            settings,
            on_return=self._start_waiting,
            on_overdue=lambda job, failure: self._end(job, _without_answer(job, failure)),
        )

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
            self._end(job, _without_answer(job, failure))
        self._launch(starts)
        if not any(start.job is job for start in starts):
            self.outages.give_up_overdue()

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
        self.outages.close()
        with self._lock:
            waiting = self._lanes.clear()
        for job in waiting:
            self._end(job, _without_answer(job, CLOSED))
        self._threads.close()

    def _in_flight(self) -> int:
        return sum(backend.in_flight.total() for backend in self.backends)

    def _start_waiting(self) -> None:
        """Sends what waits to where there is room, after something other than a call has ended."""
        with self._lock:
            starts = self._matched()
        self._launch(starts)

    def _launch(self, starts: Sequence[_Start]) -> None:
        for start in starts:
            try:
                # A place is held from the match until the call has ended: those that hold one are
                # all that need a thread.
                self._threads.submit(partial(self._serve, start), under_way=self.in_flight)
            except RuntimeError as error:
                failure = (
                    CLOSED if self._closing.is_set() else Failure("bug", f"no thread: {error}")
                )
                self._end(start.job, self._failed(start, failure))

    def _matched(self) -> list[_Start]:
        """Pairs waiting jobs with servers that have room, until one or the other runs out."""
        starts: list[_Start] = []
        found = True
        while found:
            found = False
            heads = self._lanes.heads()
            for job in heads + heads:  # asking one may have ended the turn of another
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
        """The servers that have the model and are up.

        Of those that are down, one that has never answered is asked all the same: a call that
        fails says why, one that waits says nothing.
        """
        serving = [b for b in self.backends if b.serves(job.purpose, job.model)]
        up = [b for b in serving if b.up]
        if up or not self.outages.max_outage_s:
            return up or serving
        return [] if any(b.has_answered for b in serving) else serving

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
            outcome = self._attempt_until_done(start)
            with self._lock:
                if outcome is None and not self._closing.is_set():
                    self._lanes.push(job)
                elif outcome is None:
                    outcome = _without_answer(job, CLOSED)
                starts = self._matched()
            self._launch(starts[1:])
            if outcome is not None:
                self._end(job, outcome)
            else:
                self.outages.give_up_overdue()
            start = starts[0] if starts else None

    def _end(self, job: Job, outcome: Outcome) -> None:
        try:
            job.done(outcome)
        except Exception:  # whoever is told may fail; the thread has other calls to make
            logger.exception("unexpected error after a model call")

    def _attempt_until_done(self, start: _Start) -> Outcome | None:
        """How the job ended; None where it is to wait for a server once more."""
        job = start.job
        job.started = job.started or time.monotonic()
        while not self._closing.is_set():
            job.attempts += 1
            start.sent = time.monotonic()
            try:
                reply = job.work(start.backend, self.load_timeout_s if start.cold else None)
            except CallFailedError as error:
                decision = self._decided(start, error)
                if decision.step is Step.GIVE_UP:
                    return self._failed(start, error.failure)
                self._closing.wait(decision.pause_s)
                if not self._tries_again(start, error.failure, decision.step):
                    return None
            except Exception as error:  # a bug in a dialect must not leave its caller waiting
                logger.exception("unexpected error in a model call")
                return self._failed(start, Failure("bug", f"{type(error).__name__}: {error}"))
            else:
                return self._answered(start, reply, time.monotonic())
        return self._failed(start, CLOSED)

    def _answered(self, start: _Start, reply: Reply, now: float) -> Outcome:
        job, backend = start.job, start.backend
        with self._lock:
            changed = backend.answered(job.model, start.ticket, reply, now - start.sent)
        if changed:
            self._tell_grouping(backend)
        return Outcome(reply, None, now - (job.started or now), job.attempts)

    def _decided(self, start: _Start, error: CallFailedError) -> Decision:
        """What to do about a failure; a server that is to be left alone is, from here on."""
        job, backend = start.job, start.backend
        with self._lock:
            if not error.retryable:
                backend.breaker.responded()
                return Decision(Step.GIVE_UP)
            view = self._view(start, error)
            decision = decide(error.failure, view)
            if decision.leave_alone:
                self.outages.begin(backend, job, error.failure, alone=view.is_alone)
            if decision.step is Step.WAIT:
                self._put_back(job, error.failure)
        return decision

    def _view(self, start: _Start, error: CallFailedError) -> View:
        """Counts a failure that may pass, and what is known then; under the lock."""
        job, backend = start.job, start.backend
        job.failed_on[backend] += 1
        failed_here = job.failed_on[backend]
        others = [b for b in self._able(job) if b is not backend and b.up]
        failed_elsewhere = tuple(job.failed_on[other] for other in others)
        tried_out = min((failed_here, *failed_elsewhere)) > self.retries
        suspect = backend.breaker.is_suspect(
            error.failure,
            sent=start.sent,
            first_sent=job.started or start.sent,
            last_attempt=tried_out,
            in_flight=backend.in_flight.total(),
            alone=not others,
        )
        return View(
            failed_here,
            failed_elsewhere,
            is_tried_out=tried_out,
            is_up=backend.up,
            is_suspect=suspect,
            may_wait=self._may_wait(job, error.failure),
            backoff_s=self._pauses.backoff_s(failed_here, error.retry_after_s),
            hold_s=backend.hold_s,
        )

    def _tries_again(self, start: _Start, failure: Failure, step: Step) -> bool:
        """Whether the job goes to the same server again, after its pause; else it leaves it.

        It waits with its place: on the only server, retries add no load.
        """
        job, backend = start.job, start.backend
        with self._lock:
            if step is Step.RETRY and backend.up:
                start.ticket = backend.sent_again(job.model, start.ticket)
                start.cold = backend.is_cold(job.model)
                return True
            if step is Step.RETRY and self._may_wait(job, failure):
                self._put_back(job, failure)  # the server went down meanwhile
            self._leave(start, failure)
            return False

    def _may_wait(self, job: Job, failure: Failure) -> bool:
        """Whether the job may wait for a server that is down."""
        if not self.outages.max_outage_s or job.put_back >= PUT_BACK_AT_MOST:
            return False
        if nothing_listens(failure):
            serving = (b for b in self.backends if b.serves(job.purpose, job.model))
            return any(b.has_answered for b in serving)
        return any(b.has_answered_with(job.model) for b in self.backends)

    def _put_back(self, job: Job, failure: Failure) -> None:
        """Makes a job as good as one that was not tried: an outage is no fault of its own."""
        # Refused now, but an attempt before may have arrived and brought the server down.
        if not nothing_listens(failure) or job.failed_on.total() > 1:
            job.put_back += 1
        job.failed_on.clear()
        job.started = None

    def _leave(self, start: _Start, failure: Failure) -> None:
        """Gives the place of a failed call free, if need be after a while; under the lock."""
        start.backend.failed(start.job.model, start.ticket)
        if failure.kind == "timeout":
            self.outages.hold_place(start.backend, start.job.model)
        else:
            start.backend.leave_place(start.job.model)

    def _failed(self, start: _Start, failure: Failure) -> Outcome:
        with self._lock:
            self._leave(start, failure)
        since = start.job.started or start.sent
        return _without_answer(start.job, failure, time.monotonic() - since)

    def _tell_grouping(self, backend: Backend) -> None:
        if backend.grouped:
            logger.warning(
                "%s holds one model at a time: calls are grouped by model to spare it the loads",
                backend.name,
            )
        else:
            logger.warning("%s holds its models together: no more grouping", backend.name)


def _without_answer(job: Job, failure: Failure, latency_s: float = 0.0) -> Outcome:
    return Outcome(Reply(""), failure, latency_s, job.attempts)
