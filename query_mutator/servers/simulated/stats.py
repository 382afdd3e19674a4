"""What a simulated server counts, and the snapshot of it that tests and benchmarks read."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LoggedRequest:
    """One request as it arrived; `body` is the parsed JSON, None where there was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Stats:
    """A snapshot of a simulated server's counters.

    In flight means being served or queued, for a slot or for a load; served means holding a slot.
    """

    requests: int
    """HTTP requests of every kind."""
    generation_calls: int
    """Requests for generate, chat and completions that arrived, whatever came of them."""
    generations_answered: int
    """Generations that were carried through to their last token."""
    calls_by_path: Mapping[str, int]
    """Requests by path."""
    calls_by_model: Mapping[str, int]
    """Generation and embedding requests by the model that they name."""
    statuses: Mapping[int, int]
    """Answers by HTTP status; connections that were dropped have none."""
    faults: Mapping[str, int]
    """Faults that were carried out, by kind."""
    in_flight: int
    max_in_flight: int
    served: int
    max_served: int
    queued: int
    """Calls waiting for a slot."""
    max_queued: int
    queue_lengths: tuple[int, ...]
    """The calls waiting for a slot that each of the last calls found before it."""
    model_loads: int
    loads_by_model: Mapping[str, int]
    busy_s: float
    """The latencies of all answered generations: slot time, for a utilisation."""
    connections_opened: int
    last_requests: tuple[LoggedRequest, ...]
    """The last requests, oldest first."""


class Recorder:
    """The counters behind `Stats`; every method may be called from any thread."""

    def __init__(self, log_size: int) -> None:
        self._lock = threading.Lock()
        self._log_size = log_size
        self._in_flight = self._served = self._queued = 0
        self.reset()

    def reset(self) -> None:
        """Start counting afresh; what is in flight stays so."""
        with self._lock:
            self._requests = self._generation_calls = self._answered = self._connections = 0
            self._paths: Counter[str] = Counter()
            self._models: Counter[str] = Counter()
            self._statuses: Counter[int] = Counter()
            self._faults: Counter[str] = Counter()
            self._loads: Counter[str] = Counter()
            self._busy_s = 0.0
            self._queue_lengths: deque[int] = deque(maxlen=10_000)
            self._log: deque[LoggedRequest] = deque(maxlen=self._log_size)
            self._max_in_flight = self._in_flight
            self._max_served = self._served
            self._max_queued = self._queued

    def connection_opened(self) -> None:
        with self._lock:
            self._connections += 1

    def request(self, logged: LoggedRequest) -> None:
        with self._lock:
            self._requests += 1
            self._paths[logged.path] += 1
            self._log.append(logged)

    def call_to(self, model: str) -> None:
        with self._lock:
            self._models[model] += 1

    def generation_arrived(self) -> None:
        with self._lock:
            self._generation_calls += 1
            self._in_flight += 1
            self._max_in_flight = max(self._max_in_flight, self._in_flight)

    def generation_left(self) -> None:
        with self._lock:
            self._in_flight -= 1

    def generation_answered(self, latency_s: float) -> None:
        with self._lock:
            self._answered += 1
            self._busy_s += latency_s

    def queue_seen(self) -> None:
        with self._lock:
            self._queue_lengths.append(self._queued)

    def queued(self, change: int) -> None:
        with self._lock:
            self._queued += change
            self._max_queued = max(self._max_queued, self._queued)

    def served(self, change: int) -> None:
        with self._lock:
            self._served += change
            self._max_served = max(self._max_served, self._served)

    def loaded(self, model: str) -> None:
        with self._lock:
            self._loads[model] += 1

    def answered_with(self, status: int) -> None:
        with self._lock:
            self._statuses[status] += 1

    def fault(self, kind: str) -> None:
        with self._lock:
            self._faults[kind] += 1

    def snapshot(self) -> Stats:
        """Return the counters as they stand together at one moment."""
        with self._lock:
            return Stats(
                requests=self._requests,
                generation_calls=self._generation_calls,
                generations_answered=self._answered,
                calls_by_path=dict(self._paths),
                calls_by_model=dict(self._models),
                statuses=dict(self._statuses),
                faults=dict(self._faults),
                in_flight=self._in_flight,
                max_in_flight=self._max_in_flight,
                served=self._served,
                max_served=self._max_served,
                queued=self._queued,
                max_queued=self._max_queued,
                queue_lengths=tuple(self._queue_lengths),
                model_loads=self._loads.total(),
                loads_by_model=dict(self._loads),
                busy_s=self._busy_s,
                connections_opened=self._connections,
                last_requests=tuple(self._log),
            )
