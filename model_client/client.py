"""The client: a pool of threads that do I/O, retries, shared answers and counts."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from model_client.calls import Call, CallFailedError, Failure, Outcome, Reply
from model_client.dialects import Dialect
from model_client.http import HttpServer
from servers.cache import ResponseCache, cache_key

logger = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.5
BACKOFF_LIMIT_S = 8.0
BACKOFF_JITTER = 0.25
RETRY_AFTER_LIMIT_S = 60.0
REMEMBERED_ANSWERS = 50_000


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
    failures_by_kind: Counter[str] = field(default_factory=Counter)


class ModelClient:
    """Runs calls on one server, `max_workers` at a time; a failed call is a value, never raised.

    Equal deterministic calls are made once: the answer is remembered, and a call that is still
    on its way is shared. Failures are never remembered.
    """

    def __init__(
        self,
        http: HttpServer,
        dialect: Dialect,
        *,
        retries: int = 2,
        cache: ResponseCache | None = None,
        digests: Mapping[str, str] | None = None,
    ) -> None:
        self.http = http
        self.dialect = dialect
        self.retries = retries
        self.cache = cache
        self._digests = dict(digests or {})
        self._counts = CallCounts()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pools: dict[int, ThreadPoolExecutor] = {}
        self._remembered: OrderedDict[bytes, Reply] = OrderedDict()
        self._on_their_way: dict[bytes, Future[Outcome]] = {}
        self._told_kinds: set[tuple[str, str]] = set()
        self._failures_in_a_row = 0
        self._last_failure = ""

    def submit(self, call: Call, *, max_workers: int = 8) -> Future[Outcome]:
        """The future outcome of `call`, run in the pool of `max_workers` threads."""
        future: Future[Outcome] = Future()
        key = self._key(call) if call.temperature == 0 else None
        with self._lock:
            if key is not None and (reply := self._recall(key)) is not None:
                self._counts.cache_hits += 1
                future.set_result(Outcome(reply, cached=True))
                return future
            if key is not None and (first := self._on_their_way.get(key)) is not None:
                first.add_done_callback(lambda done: self._share(done, future))
                return future
            if key is not None:
                self._on_their_way[key] = future
            pool = self._pool(max_workers)
        try:
            queued = pool.submit(self._run, call, key, future)
        except RuntimeError:  # closed in the meantime
            self._abandon(key, future)
        else:
            queued.add_done_callback(
                lambda done: self._abandon(key, future) if done.cancelled() else None
            )
        return future

    def run(self, calls: Sequence[Call], *, max_workers: int = 8) -> list[Outcome]:
        """The outcomes of all `calls`, in their order."""
        futures = [self.submit(call, max_workers=max_workers) for call in calls]
        return [future.result() for future in futures]

    def ask(self, call: Call, *, timeout_s: float) -> Outcome:
        """The outcome of one call with a deadline of its own, in the caller's thread, uncounted."""
        return self._attempt_until_done(call, timeout_s)

    def embed(
        self,
        model: str,
        texts: Sequence[str],
        *,
        num_ctx: int,
        max_workers: int = 8,
        timeout_s: float | None = None,
    ) -> list[list[float]]:
        """Embeddings from the server, within the same limit of calls; raises where it fails."""
        path, payload = self.dialect.embed_request(model, texts, num_ctx=num_ctx)

        def ask() -> list[list[float]]:
            for attempt in range(1, self.retries + 2):
                try:
                    body = self.http.post(path, payload, timeout_s=timeout_s)
                    return self.dialect.read_embeddings(body)
                except CallFailedError as error:
                    if not self._wait_to_retry(attempt, error):
                        raise
            raise AssertionError("unreachable: the last attempt returns or raises")

        with self._lock:
            pool = self._pool(max_workers)
        return pool.submit(ask).result()

    def counts(self) -> CallCounts:
        """A copy of the counts so far."""
        with self._lock:
            copy = replace(self._counts)
            copy.failures_by_kind = Counter(self._counts.failures_by_kind)
            return copy

    def why_gone(self) -> str:
        """Why the server counts as gone, or "": too many calls in a row have failed."""
        with self._lock:
            limit = 3 + 2 * max(self._pools, default=1)
            return self._last_failure if self._failures_in_a_row >= limit else ""

    def close(self) -> None:
        """Cancels what has not started and gives up waiting retries."""
        self._closing.set()
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        self.http.close()
        if self.cache is not None:
            self.cache.close()

    def _pool(self, max_workers: int) -> ThreadPoolExecutor:
        if max_workers not in self._pools:
            self._pools[max_workers] = ThreadPoolExecutor(max_workers, "model-call")
        return self._pools[max_workers]

    def _key(self, call: Call) -> bytes:
        return cache_key(self.dialect.name, self._digests.get(call.model, ""), call)

    def _recall(self, key: bytes) -> Reply | None:
        """The answer to an equal call, from memory or from the cache file."""
        if (reply := self._remembered.get(key)) is not None:
            self._remembered.move_to_end(key)
        elif self.cache is not None and (reply := self.cache.get(key)) is not None:
            self._remember(key, reply)
        return reply

    def _remember(self, key: bytes, reply: Reply) -> None:
        self._remembered[key] = reply
        if len(self._remembered) > REMEMBERED_ANSWERS:
            self._remembered.popitem(last=False)

    def _abandon(self, key: bytes | None, future: Future[Outcome]) -> None:
        with self._lock:
            if key is not None:
                self._on_their_way.pop(key, None)
        future.set_result(Outcome(Reply(""), Failure("closed", "the client was closed")))

    def _share(self, done: Future[Outcome], future: Future[Outcome]) -> None:
        outcome = done.result()
        if not outcome.failed:
            with self._lock:
                self._counts.cache_hits += 1
            outcome = replace(outcome, cached=True, latency_s=0.0)
        future.set_result(outcome)

    def _run(self, call: Call, key: bytes | None, future: Future[Outcome]) -> None:
        with self._lock:
            self._counts.in_flight += 1
            self._counts.max_in_flight = max(self._counts.max_in_flight, self._counts.in_flight)
        try:
            outcome = self._attempt_until_done(call)
        except Exception as error:  # a bug in a dialect must not leave its caller waiting
            outcome = Outcome(Reply(""), Failure("bug", f"{type(error).__name__}: {error}"))
            logger.exception("unexpected error in a model call")
        with self._lock:
            self._count(outcome)
            if key is not None:
                del self._on_their_way[key]
                if not outcome.failed:
                    self._remember(key, outcome.reply)
        if key is not None and self.cache is not None and not outcome.failed:
            self.cache.put(key, call.model, outcome.reply)
        if outcome.failure is not None:
            self._tell_once(call, outcome.failure)
        future.set_result(outcome)

    def _count(self, outcome: Outcome) -> None:
        counts = self._counts
        counts.in_flight -= 1
        counts.model_calls += 1
        counts.attempts += outcome.attempts
        counts.latency_s += outcome.latency_s
        counts.prompt_tokens += outcome.reply.prompt_tokens
        counts.completion_tokens += outcome.reply.completion_tokens
        counts.queue_s += outcome.reply.queue_s
        counts.load_s += outcome.reply.load_s
        if outcome.failure is None:
            self._failures_in_a_row = 0
        else:
            counts.failed_calls += 1
            counts.failures_by_kind[outcome.failure.kind] += 1
            self._failures_in_a_row += 1
            self._last_failure = outcome.failure.reason

    def _attempt_until_done(self, call: Call, timeout_s: float | None = None) -> Outcome:
        path, payload = self.dialect.chat_request(call)
        started = time.monotonic()
        for attempt in range(1, self.retries + 2):
            try:
                reply = self.dialect.read_chat(self.http.post(path, payload, timeout_s=timeout_s))
                reply = replace(reply, text=without_surrogates(reply.text))
                return Outcome(reply, None, time.monotonic() - started, attempt)
            except CallFailedError as error:
                if not self._wait_to_retry(attempt, error):
                    return Outcome(Reply(""), error.failure, time.monotonic() - started, attempt)
        raise AssertionError("unreachable: the last attempt returns")

    def _wait_to_retry(self, attempt: int, error: CallFailedError) -> bool:
        """Backs off; False where there is no further attempt to make."""
        if attempt > self.retries or not error.retryable or self._closing.is_set():
            return False
        return not self._closing.wait(backoff_s(attempt, error.retry_after_s))

    def _tell_once(self, call: Call, failure: Failure) -> None:
        with self._lock:
            told = (call.purpose, failure.kind) in self._told_kinds
            self._told_kinds.add((call.purpose, failure.kind))
        if not told and not self._closing.is_set():
            logger.warning(
                "%s call failed: %s (more of this kind are counted, not shown)",
                call.purpose,
                failure.reason,
            )


def without_surrogates(text: str) -> str:
    """The text with halves of surrogate pairs replaced: no encoder or file would take them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def backoff_s(attempt: int, retry_after_s: float | None) -> float:
    """How long to wait after attempt number `attempt`: what the server asks, or doubling waits."""
    if retry_after_s is not None:
        return min(retry_after_s, RETRY_AFTER_LIMIT_S)
    wait_s = min(BACKOFF_FIRST_S * 2.0 ** (attempt - 1), BACKOFF_LIMIT_S)
    # Jitter spreads the retries of many threads; nothing learned depends on it: it has no seed.
    return wait_s * random.uniform(1 - BACKOFF_JITTER, 1)
