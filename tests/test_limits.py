"""The number of calls at once that a server is given: found quickly, kept close, followed."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pytest

from query_mutator.bench.strategies import Workload, own_pace
from query_mutator.models.calls import Reply
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.limits import Limit, QueueWaitLimit, Ticket
from query_mutator.models.roles import Roles
from query_mutator.models.settings import ModelSettings
from query_mutator.models.throughput_limit import ThroughputLimit
from query_mutator.servers.simulated import SimulatedServer
from tests.conftest import SIMULATED_MODELS

MEAN_S = 0.25
FOUND_AFTER = 300
"""Answers within which the limit must have been found."""


@dataclass
class Answered:
    """One answer: when it came, its time on a slot, and how many calls were under way before."""

    time_s: float
    served_s: float
    in_flight: int


class Queue:
    """A server in simulated time: slots, and a queue without a limit, first come first served."""

    def __init__(self, slots: int, *, sigma: float, seed: int, tells: bool) -> None:
        self.slots = slots
        self._tells = tells
        self._random = np.random.default_rng(seed)
        self._sigma = sigma
        self._waiting: deque[tuple[float, Ticket]] = deque()
        self._served: list[tuple[float, int, float, float, Ticket]] = []
        self._number = 0
        self._now = 0.0

    def drive(self, limit: Limit, answers: int, *, offered: int) -> list[Answered]:
        """Sends as many as the limit allows, of at most `offered`, until so many are answered."""
        log: list[Answered] = []
        now = self._now
        while len(log) < answers:
            while self._in_flight < min(limit.value, offered):
                self._waiting.append((now, limit.sent(self._in_flight + 1)))
            self._begin(now)
            before = self._in_flight
            now, _, sent, began, ticket = heapq.heappop(self._served)
            wait_s, served_s = (began - sent, now - began) if self._tells else (0.0, 0.0)
            limit.answered(ticket, Reply("", queue_s=wait_s, served_s=served_s), now - sent)
            log.append(Answered(now, now - began, before))
        self._now = now
        return log

    @property
    def _in_flight(self) -> int:
        return len(self._waiting) + len(self._served)

    def _begin(self, now: float) -> None:
        while self._waiting and len(self._served) < self.slots:
            sent, ticket = self._waiting.popleft()
            deviate = self._random.normal()
            latency_s = MEAN_S * np.exp(self._sigma * deviate - self._sigma**2 / 2)
            self._number += 1
            heapq.heappush(self._served, (now + latency_s, self._number, sent, now, ticket))


def share_of_slots(log: list[Answered], slots: int) -> float:
    """The time that calls held slots, over the time that there was."""
    served_s = sum(answered.served_s for answered in log[1:])
    return served_s / slots / (log[-1].time_s - log[0].time_s)


KINDS: dict[str, tuple[Callable[[], Limit], bool]] = {
    "queue wait": (QueueWaitLimit, True),
    "throughput": (ThroughputLimit, False),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("slots", [1, 4, 8, 24])
@pytest.mark.parametrize("kind", KINDS)
def test_the_slots_are_found_within_300_calls_and_no_queue_is_built(
    kind: str, slots: int, sigma: float, seed: int
) -> None:
    make, tells = KINDS[kind]
    server = Queue(slots, sigma=sigma, seed=seed, tells=tells)
    log = server.drive(make(), 1500, offered=64)[FOUND_AFTER:]
    assert share_of_slots(log, slots) >= 0.9
    assert max(answered.in_flight for answered in log) <= 2 * slots + 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("before", "after"), [(8, 2), (4, 12)])
def test_a_server_that_changes_is_followed(kind: str, before: int, after: int) -> None:
    make, tells = KINDS[kind]
    limit = make()
    server = Queue(before, sigma=0.5, seed=1, tells=tells)
    server.drive(limit, 1000, offered=64)
    server.slots = after
    server.drive(limit, 2000, offered=64)
    log = server.drive(limit, 1000, offered=64)
    assert share_of_slots(log, after) >= 0.9
    assert max(answered.in_flight for answered in log) <= 2 * after + 2


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_environments_are_no_reason_to_raise_the_limit(kind: str) -> None:
    make, tells = KINDS[kind]
    limit = make()
    Queue(24, sigma=0.5, seed=1, tells=tells).drive(limit, 1000, offered=6)
    assert limit.value <= 16


@pytest.mark.parametrize(
    "options",
    [{}, {"slots_per_model": True}, {"dialects": ("openai",)}],
    ids=["ollama", "slots per model", "openai"],
)
@pytest.mark.parametrize("slots", [1, 4])
def test_on_a_real_server_the_slots_are_filled_and_no_queue_is_built(
    slots: int, options: dict[str, Any]
) -> None:
    with SimulatedServer(slots=slots, mean_latency_s=0.007 * slots, sigma=0.5, **options) as server:
        connection = connect(ModelSettings(server.url, **SIMULATED_MODELS))
        client = ModelClient(connection.backends)
        roles = Roles(**SIMULATED_MODELS)
        own_pace(client, Workload(24, 6, None, roles))
        assert server.stats.generation_calls == 288
        server.reset_stats()
        own_pace(client, Workload(24, 9, None, roles))
        client.close()
        connection.close()
        assert server.stats.generation_calls == 144, "the first steps are known"
        assert server.stats.max_served == slots * (2 if server.slots_per_model else 1)
        # Usually: where the machine is busy with other things, latencies mislead for a while.
        assert median(server.stats.queue_lengths) <= slots + 2, "of 24 that could wait"


def test_the_time_before_a_call_queues_is_no_wait_for_a_slot() -> None:
    with SimulatedServer(slots=4, mean_latency_s=0.03, sigma=0.5, warm_time_s=0.075) as server:
        connection = connect(ModelSettings(server.url, **SIMULATED_MODELS))
        client = ModelClient(connection.backends)
        own_pace(client, Workload(32, 8, None, Roles(**SIMULATED_MODELS)))
        client.close()
        connection.close()
        assert server.stats.max_served == 4
        assert server.stats.max_in_flight >= 4 * 3, "most of the time a call is not on a slot"


def test_slots_that_a_server_tells_are_believed() -> None:
    with SimulatedServer(slots=3, mean_latency_s=0.01, dialects=("openai",), props=True) as server:
        connection = connect(ModelSettings(server.url, **SIMULATED_MODELS))
        client = ModelClient(connection.backends)
        own_pace(client, Workload(12, 4, None, Roles(**SIMULATED_MODELS)))
        client.close()
        connection.close()
        assert server.stats.max_in_flight == 4, "all slots, and one call that waits"
