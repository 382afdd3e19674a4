"""The client: shared and remembered answers in front of the servers, and counts of it all."""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from query_mutator.models.backend import Backend, BackendStatus
from query_mutator.models.cache import ResponseCache, cache_key
from query_mutator.models.calls import Call, CallFailedError, Failure, Outcome, Reply
from query_mutator.models.dialects.base import bounded
from query_mutator.models.dispatch import Dispatcher
from query_mutator.models.jobs import AHEAD, Job, Priority
from query_mutator.models.outages import Outage
from query_mutator.models.settings import ModelSettings

logger = logging.getLogger(__name__)

REMEMBERED_ANSWERS = 50_000
REMEMBERED_BESIDE_FILE = 5_000
"""Where a cache file holds all of them, memory is for those that are asked for again soon."""
TICK_S = 0.5
"""Between two calls of `on_wait`."""
FATAL_AT_FIRST = {"connection", "timeout", "server_error", "busy", "not_found"}
"""Failures of a model's first call after which asking it again is in vain."""


@dataclass
class CallCounts:
    """What the calls of a run added up to. A retried call counts once."""

    model_calls: int = 0
    failed_calls: int = 0
    cache_hits: int = 0
    attempts: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    queue_s: float = 0.0
    """Time that calls waited for a slot, where the server tells."""
    load_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    """The latencies of calls added up, by what they were for."""
    failures_by_kind: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _OnItsWay:
    future: Future[Outcome]
    job: Job


class ModelClient:
    """Runs calls on one or more servers; a failed call is a value, never raised.

    Equal deterministic calls are made once: the answer is remembered, and a call that is still
    on its way is shared. Failures are never remembered. While no server answers, calls wait for up
    to `max_outage_s`; then they fail.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        settings: ModelSettings | None = None,
        *,
        cache: ResponseCache | None = None,
    ) -> None:
        self.settings = settings or ModelSettings()
        self.backends = list(backends)
        self.cache = cache
        self.on_wait: Callable[[], None] | None = None
        """Called now and then, while somebody waits for answers, on the thread that waits."""
        self._dispatcher = Dispatcher(backends, self.settings)
        self._counts = CallCounts()
        self._lock = threading.Lock()
        self._closed = False
        self._remembered: OrderedDict[bytes, Reply] = OrderedDict()
        self._on_their_way: dict[bytes, _OnItsWay] = {}
        self._fetched_ahead: set[bytes] = set()
        """Calls that were made before anybody asked for them, until somebody does."""
        self._identities: dict[str, tuple[str, str]] = {}
        self._answered_models: set[str] = set()
        self._told_kinds: set[tuple[str, str]] = set()
        self._failures_in_a_row = 0
        self._last_failure = ""
        self._never_answered: dict[str, str] = {}

    def submit(
        self, call: Call, *, max_workers: int | None = 8, priority: Priority = ()
    ) -> Future[Outcome]:
        """The future outcome of `call`, one of at most `max_workers` at once on a server.

        With None, as many go out at once as the server shows that it can serve.
        """
        future = _running(Future[Outcome]())
        key = self._key(call) if call.temperature == 0 else None
        with self._lock:
            if key is not None and (reply := self._recall(key, call)) is not None:
                used_before = key not in self._fetched_ahead
                self._fetched_ahead.discard(key)
                self._counts.cache_hits += used_before
                future.set_result(Outcome(reply, cached=used_before))
                return future
            first = self._on_their_way.get(key) if key is not None else None
            if first is None:
                job = self._job(call, key, future, max_workers, priority)
            else:
                job = first.job
                used_before = key not in self._fetched_ahead
                self._fetched_ahead.discard(key)
                first.future.add_done_callback(lambda done: self._share(done, future, used_before))
        if first is None:
            self._dispatcher.put(job)
        else:
            self._dispatcher.hurry(job, priority)
        return future

    def fetch_ahead(self, call: Call, *, max_workers: int | None = 8) -> None:
        """Makes a call that will be needed, when no other waits; its answer is remembered."""
        if call.temperature != 0:
            return
        key = self._key(call)
        with self._lock:
            if key in self._on_their_way or self._recall(key, call) is not None:
                return
            self._fetched_ahead.add(key)
            job = self._job(call, key, _running(Future()), max_workers, AHEAD)
        self._dispatcher.put(job)

    def wait_for_ahead(self) -> None:
        """Makes the calls that nobody has asked for yet, as if somebody had, and waits for them."""
        with self._lock:
            unasked = self._fetched_ahead & self._on_their_way.keys()
            waiting = [self._on_their_way[key] for key in unasked]
        for one in waiting:
            self._dispatcher.hurry(one.job, ())
        concurrent.futures.wait([one.future for one in waiting])

    def _job(
        self,
        call: Call,
        key: bytes | None,
        future: Future[Outcome],
        max_workers: int | None,
        priority: Priority,
    ) -> Job:
        """What makes `call` and gives `future` its outcome; noted as on its way."""

        def work(backend: Backend, timeout_s: float | None) -> Reply:
            path, payload = backend.dialect.chat_request(call)
            body = backend.http.post(path, payload, timeout_s=timeout_s)
            return bounded(backend.dialect.read_chat(body), call.max_tokens)

        job = Job(
            call.purpose,
            call.model,
            work,
            lambda outcome: self._ended(call, key, future, outcome),
            max_workers,
            priority,
        )
        if key is not None:
            self._on_their_way[key] = _OnItsWay(future, job)
        return job

    def run(self, calls: Sequence[Call], *, max_workers: int | None = 8) -> list[Outcome]:
        """The outcomes of all `calls`, in their order."""
        futures = [self.submit(call, max_workers=max_workers) for call in calls]
        return [future.result() for future in futures]

    def embed(self, model: str, texts: Sequence[str], *, num_ctx: int) -> list[list[float]]:
        """Embeddings from a server, beside the calls that are under way; raises where it fails."""

        vectors: list[list[float]] = []

        def work(backend: Backend, timeout_s: float | None) -> Reply:
            path, payload = backend.dialect.embed_request(model, texts, num_ctx=num_ctx)
            body = backend.http.post(path, payload, timeout_s=timeout_s)
            vectors[:] = backend.dialect.read_embeddings(body)
            return Reply("")

        future: Future[Outcome] = Future()
        self._dispatcher.put(Job("embedding", model, work, future.set_result, beside_limit=True))
        failure = self._waited_for(future).failure
        if failure is not None:
            raise CallFailedError(failure.kind, failure.reason, retryable=False)
        return vectors

    def _waited_for(self, future: Future[Outcome]) -> Outcome:
        while self.on_wait is not None:
            try:
                return future.result(TICK_S)
            except TimeoutError:
                self.on_wait()
        return future.result()

    def unused_ahead(self) -> int:
        """How many calls were made ahead that nobody has asked for."""
        with self._lock:
            return len(self._fetched_ahead)

    def counts(self) -> CallCounts:
        """A copy of the counts so far."""
        with self._lock:
            copy = replace(self._counts)
            copy.failures_by_kind = Counter(self._counts.failures_by_kind)
            copy.seconds = dict(self._counts.seconds)
        copy.in_flight = self._dispatcher.in_flight
        copy.max_in_flight = self._dispatcher.max_in_flight
        return copy

    def servers(self) -> list[BackendStatus]:
        """How each server fares."""
        return self._dispatcher.status()

    def outage(self) -> Outage | None:
        """What calls wait for, while no server answers them."""
        return self._dispatcher.outages.current()

    def why_gone(self) -> str:
        """Why the servers count as gone, or "".

        None has answered for `max_outage_s`, a model has not answered its first call, or too many
        calls in a row have failed.
        """
        if reason := self._dispatcher.outages.why_gone():
            return reason
        with self._lock:
            for reason in self._never_answered.values():
                return reason
            limit = 3 + 2 * max(1, self._dispatcher.max_in_flight)
            return self._last_failure if self._failures_in_a_row >= limit else ""

    def close(self) -> None:
        """Cancels what has not started and gives up waiting retries."""
        self._closed = True
        self._dispatcher.close()
        for backend in self.backends:
            backend.http.close()
        if self.cache is not None:
            self.cache.close()

    def _key(self, call: Call) -> bytes:
        if call.model not in self._identities:
            have = [backend for backend in self.backends if call.model in backend.models]
            self._identities[call.model] = (
                "+".join(sorted({backend.dialect.name for backend in have})),
                "+".join(sorted({backend.models[call.model] for backend in have})),
            )
        return cache_key(*self._identities[call.model], call)

    def _recall(self, key: bytes, call: Call) -> Reply | None:
        """The answer to an equal call, from memory or from the cache file."""
        if (reply := self._remembered.get(key)) is not None:
            self._remembered.move_to_end(key)
        elif self.cache is not None and (reply := self.cache.get(key)) is not None:
            reply = bounded(reply, call.max_tokens)
            self._remember(key, reply)
        return reply

    def _remember(self, key: bytes, reply: Reply) -> None:
        self._remembered[key] = reply
        most = REMEMBERED_ANSWERS if self.cache is None else REMEMBERED_BESIDE_FILE
        while len(self._remembered) > most:
            forgotten, _ = self._remembered.popitem(last=False)
            self._fetched_ahead.discard(forgotten)  # nobody has asked for it, and nobody will

    def _share(self, done: Future[Outcome], future: Future[Outcome], used_before: bool) -> None:
        outcome = done.result()
        if not outcome.failed and used_before:
            with self._lock:
                self._counts.cache_hits += 1
            outcome = replace(outcome, cached=True, latency_s=0.0)
        future.set_result(outcome)

    def _ended(
        self, call: Call, key: bytes | None, future: Future[Outcome], outcome: Outcome
    ) -> None:
        reply = outcome.reply
        if not reply.served_s:
            reply = replace(reply, served_s=outcome.latency_s)
            outcome = replace(outcome, reply=reply)
        with self._lock:
            if outcome.attempts or outcome.is_outage:
                self._count(call, outcome)
            elif outcome.failure is not None:
                self._failed_again(outcome.failure)
            if key is not None:
                del self._on_their_way[key]
                if outcome.failed:
                    self._fetched_ahead.discard(key)
                else:
                    self._remember(key, reply)
        if key is not None and self.cache is not None and not outcome.failed:
            self.cache.put(key, call.model, reply)
        if outcome.failure is not None:
            self._tell_once(call, outcome.failure)
        future.set_result(outcome)

    def _count(self, call: Call, outcome: Outcome) -> None:
        counts = self._counts
        counts.model_calls += 1
        counts.attempts += outcome.attempts
        counts.latency_s += outcome.latency_s
        counts.seconds[call.purpose] = counts.seconds.get(call.purpose, 0.0) + outcome.latency_s
        counts.prompt_tokens += outcome.reply.prompt_tokens
        counts.completion_tokens += outcome.reply.completion_tokens
        counts.queue_s += outcome.reply.queue_s
        counts.load_s += outcome.reply.load_s
        if outcome.failure is None:
            self._failures_in_a_row = 0
            self._answered_models.add(call.model)
            self._never_answered.pop(call.model, None)
            return
        counts.failed_calls += 1
        counts.failures_by_kind[outcome.failure.kind] += 1
        if not outcome.is_outage:  # that has an end of its own
            self._failed_again(outcome.failure)
        if call.model not in self._answered_models and outcome.failure.kind in FATAL_AT_FIRST:
            advice = ""
            if outcome.failure.kind == "timeout":
                advice = "; it may still be loading: raise --load-timeout"
            self._never_answered[call.model] = (
                f"the model {call.model} did not answer its first call: "
                f"{outcome.failure.reason}{advice}"
            )

    def _failed_again(self, failure: Failure) -> None:
        self._failures_in_a_row += 1
        self._last_failure = failure.reason

    def _tell_once(self, call: Call, failure: Failure) -> None:
        with self._lock:
            told = (call.purpose, failure.kind) in self._told_kinds
            self._told_kinds.add((call.purpose, failure.kind))
        if not told and not self._closed:
            logger.warning(
                "%s call failed: %s (more of this kind are counted, not shown)",
                call.purpose,
                failure.reason,
            )


def _running(future: Future[Outcome]) -> Future[Outcome]:
    """The future as one that cannot be cancelled: others may wait for the same answer."""
    future.set_running_or_notify_cancel()
    return future
