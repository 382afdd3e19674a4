"""What a simulated server counts, and the snapshot of it that tests and benchmarks read."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LoggedRequest:
    """One request as it arrived; `body` is the parsed JSON, None where there was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Stats:
    """A snapshot of a simulated server's counters.

    In flight means being served or queued, for a slot or for a load; served means holding a slot.
    """

    requests: int = 0
    """HTTP requests of every kind."""
    generation_calls: int = 0
    """Requests for generate, chat and completions that arrived, whatever came of them."""
    generations_answered: int = 0
    """Generations that were carried through to their last token."""
    calls_by_path: Counter[str] = field(default_factory=Counter)
    """Requests by path."""
    calls_by_model: Counter[str] = field(default_factory=Counter)
    """Generation and embedding requests by the model that they name."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Answers by HTTP status; connections that were dropped have none."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults that were carried out, by kind."""
    in_flight: int = 0
    max_in_flight: int = 0
    served: int = 0
    max_served: int = 0
    queued: int = 0
    """Calls waiting for a slot."""
    max_queued: int = 0
    queue_lengths: Sequence[int] = ()
    """The calls waiting for a slot that each of the last calls found before it."""
    model_loads: int = 0
    loads_by_model: Counter[str] = field(default_factory=Counter)
    busy_s: float = 0.0
    """The latencies of all answered generations: slot time, for a utilisation."""
    connections_opened: int = 0
    last_requests: Sequence[LoggedRequest] = ()
    """The last requests, oldest first."""


class Recorder:
    """The counters behind `Stats`; every method may be called from any thread."""

    def __init__(self, log_size: int) -> None:
        self._lock = threading.Lock()
        self._queue_lengths: deque[int] = deque(maxlen=10_000)
        self._log: deque[LoggedRequest] = deque(maxlen=log_size)
        self._stats = Stats()

    def reset(self) -> None:
        """Start counting afresh; what is in flight stays so."""
        with self._lock:
            now = self._stats
            self._stats = Stats(in_flight=now.in_flight, served=now.served, queued=now.queued)
            for name in ("in_flight", "served", "queued"):
                self._change(name, 0)
            self._queue_lengths.clear()
            self._log.clear()

    def connection_opened(self) -> None:
        with self._lock:
            self._stats.connections_opened += 1

    def request(self, logged: LoggedRequest) -> None:
        with self._lock:
            self._stats.requests += 1
            self._stats.calls_by_path[logged.path] += 1
            self._log.append(logged)

    def call_to(self, model: str) -> None:
        with self._lock:
            self._stats.calls_by_model[model] += 1

    def generation_arrived(self) -> None:
        with self._lock:
            self._stats.generation_calls += 1
            self._change("in_flight", +1)

    def generation_left(self) -> None:
        with self._lock:
            self._stats.in_flight -= 1

    def generation_answered(self, latency_s: float) -> None:
        with self._lock:
            self._stats.generations_answered += 1
            self._stats.busy_s += latency_s

    def queue_seen(self) -> None:
        with self._lock:
            self._queue_lengths.append(self._stats.queued)

    def queued(self, change: int) -> None:
        with self._lock:
            self._change("queued", change)

    def served(self, change: int) -> None:
        with self._lock:
            self._change("served", change)

    def loaded(self, model: str) -> None:
        with self._lock:
            self._stats.model_loads += 1
            self._stats.loads_by_model[model] += 1

    def answered_with(self, status: int) -> None:
        with self._lock:
            self._stats.statuses[status] += 1

    def fault(self, kind: str) -> None:
        with self._lock:
            self._stats.faults[kind] += 1

    def snapshot(self) -> Stats:
        """Return the counters as they stand together at one moment."""
        with self._lock:
            counters = {name: copy(value) for name, value in vars(self._stats).items()}
            logs = {"queue_lengths": tuple(self._queue_lengths), "last_requests": tuple(self._log)}
            return Stats(**counters | logs)

    def _change(self, name: str, change: int) -> None:
        """Changes what is counted at one moment, and the most that it ever was."""
        value = getattr(self._stats, name) + change
        setattr(self._stats, name, value)
        setattr(self._stats, f"max_{name}", max(value, getattr(self._stats, f"max_{name}")))
