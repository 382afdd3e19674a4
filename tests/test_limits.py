"""The number of calls at once that a server is given: found quickly, kept close, followed."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from model_client.calls import Reply
from model_client.limits import Limit, QueueWaitLimit, Ticket
from model_client.throughput_limit import ThroughputLimit

MEAN_S = 0.25
FOUND_AFTER = 300
"""Answers within which the limit must have been found."""


@dataclass
class Answered:
    """One answer: when it came, and how many calls were under way just before."""

    time_s: float
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

    def drive(self, limit: Limit, answers: int, *, offered: int) -> list[Answered]:
        """Sends as many as the limit allows, of at most `offered`, until so many are answered."""
        log: list[Answered] = []
        now = 0.0
        while len(log) < answers:
            while self._in_flight < min(limit.value, offered):
                self._waiting.append((now, limit.sent(self._in_flight + 1)))
            self._begin(now)
            before = self._in_flight
            now, _, sent, began, ticket = heapq.heappop(self._served)
            wait_s, served_s = (began - sent, now - began) if self._tells else (0.0, 0.0)
            limit.answered(ticket, Reply("", queue_s=wait_s, served_s=served_s), now - sent)
            log.append(Answered(now, before))
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


def share_of_best(log: list[Answered], slots: int) -> float:
    """Answers a second over those of slots that are never idle."""
    seconds = log[-1].time_s - log[0].time_s
    return (len(log) - 1) / seconds / (slots / MEAN_S)


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
    assert share_of_best(log, slots) >= 0.9
    assert max(answered.in_flight for answered in log) <= 2 * slots + 2
