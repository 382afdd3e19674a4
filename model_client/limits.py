"""How many calls a server should be given at once, found from its answers.

A server that is full does not refuse calls, it answers late. So a limit watches how late: by the
queue wait that Ollama's durations tell, or, where a server tells none, by whether more calls at
once still get more answers a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from model_client.calls import Reply

FIRST_GUESS = 2
MOST_AT_ONCE = 1024
LOAD_S = 0.2
"""Below this a load duration is the server's own bookkeeping, not a load."""

TOO_FEW_WAITING = 0.5
TOO_MANY_WAITING = 1.5
"""One call waiting in the queue keeps a slot busy while the client turns round; more only wait."""

STILL_FASTER = 1.5
"""Twice the calls at once must bring so many times the answers to go on doubling."""
SPARE = 1.1
"""A little above the knee costs little; below it, slots are idle."""
SLOWED_DOWN = 0.6
CLIMB_WINDOW = 20
STEADY_WINDOW = 60
"""Latencies vary with the length of answers: their mean over fewer calls is mostly chance."""
PROBE_AFTER_WINDOWS = 4
PROBE_FACTOR = 1.5
PROBE_GAIN = 1.25


@dataclass(frozen=True)
class Ticket:
    """How a call was sent: as which of so many at once, and under which value of the limit."""

    at_once: int
    version: int


class Limit(Protocol):
    """The number of calls to have under way on one server for one model."""

    value: int

    def sent(self, at_once: int) -> Ticket:
        """Notes that a call goes out, with itself `at_once` are under way."""

    def answered(self, ticket: Ticket, reply: Reply, latency_s: float) -> None:
        """Learns from an answer."""


class ToldLimit:
    """For a server that tells its slots, as llama.cpp does: those, and one call waiting."""

    def __init__(self, slots: int) -> None:
        self.value = slots + 1

    def sent(self, at_once: int) -> Ticket:
        return Ticket(at_once, 0)

    def answered(self, ticket: Ticket, reply: Reply, latency_s: float) -> None:
        """There is nothing to learn."""


class _Window:
    """Means over the calls that were sent under one value of a limit."""

    def __init__(self) -> None:
        self.count = 0
        self._at_once = self._wait_s = self._served_s = self._latency_s = 0.0

    def add(self, at_once: int, wait_s: float, served_s: float, latency_s: float) -> None:
        self.count += 1
        self._at_once += at_once
        self._wait_s += wait_s
        self._served_s += served_s
        self._latency_s += latency_s

    @property
    def at_once(self) -> float:
        return self._at_once / self.count

    @property
    def waiting(self) -> float:
        """How many of the calls under way were in the queue: by Little's law, from the times."""
        return self.at_once * self._wait_s / max(self._wait_s + self._served_s, 1e-9)

    @property
    def rate(self) -> float:
        """Answers a second while `at_once` calls are under way."""
        return self.at_once * self.count / max(self._latency_s, 1e-9)


class _Versioned:
    """What the limits that learn share: a value, and a window of calls sent under it."""

    def __init__(self) -> None:
        self.value = FIRST_GUESS
        self._version = 0
        self._window = _Window()

    def sent(self, at_once: int) -> Ticket:
        return Ticket(at_once, self._version)

    def _set(self, value: float) -> None:
        """Begins a window even where the value stays: old answers say nothing about a new guess."""
        self.value = min(max(1, round(value)), MOST_AT_ONCE)
        self._version += 1
        self._window = _Window()


class QueueWaitLimit(_Versioned):
    """Doubles until calls wait for a slot, then keeps about one of them waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._doubling = True
        self._least_wait_s = float("inf")

    def answered(self, ticket: Ticket, reply: Reply, latency_s: float) -> None:
        # The shortest wait seen is the server's own overhead, not a queue.
        self._least_wait_s = min(self._least_wait_s, reply.queue_s)
        if ticket.version != self._version or reply.load_s > LOAD_S:
            return
        window = self._window
        wait_s = reply.queue_s - self._least_wait_s
        window.add(ticket.at_once, wait_s, reply.served_s, latency_s)
        # The first steps are quick, on little evidence; later ones must not follow chance.
        enough = max(3, self.value // 2) if self._doubling else max(8, self.value)
        if window.count < enough:
            return
        if window.waiting > TOO_MANY_WAITING:
            self._doubling = False
            self._set(window.at_once - window.waiting + 1)
        elif window.waiting < TOO_FEW_WAITING and window.at_once >= 0.75 * self.value:
            self._set(self.value * 2 if self._doubling else self.value + max(1, self.value // 8))
        elif window.count >= 2 * self.value:
            self._doubling = self._doubling and window.waiting < TOO_FEW_WAITING
            self._set(self.value)


class ThroughputLimit(_Versioned):
    """Doubles while that brings more answers a second, then stays; looks again from time to time.

    Where twice the calls bring g times the answers, the knee is near g times the calls.
    """

    def __init__(self) -> None:
        super().__init__()
        self._climbing = True
        self._before: tuple[float, float] | None = None
        """Calls at once and answers a second of the step below, while climbing or probing."""
        self._settled_rate = 0.0
        self._windows = 0

    def answered(self, ticket: Ticket, reply: Reply, latency_s: float) -> None:
        if ticket.version != self._version:
            return
        window = self._window
        window.add(ticket.at_once, 0.0, 0.0, latency_s)
        if window.count < max(CLIMB_WINDOW if self._climbing else STEADY_WINDOW, 2 * self.value):
            return
        if self._climbing:
            self._climb(window)
        elif self._before is not None:
            self._probed(window)
        else:
            self._watch(window)

    def _climb(self, window: _Window) -> None:
        if self._before is not None:
            calls, rate = self._before
            if window.rate < STILL_FASTER * rate:
                knee = calls * max(1.0, window.rate / rate)
                self._settle(SPARE * knee, max(rate, window.rate))
                return
        if window.at_once < 0.75 * self.value:  # there are no more calls to make at once
            self._settle(self.value, window.rate)
            return
        self._before = (window.at_once, window.rate)
        self._set(self.value * 2)

    def _watch(self, window: _Window) -> None:
        self._windows += 1
        if window.rate < SLOWED_DOWN * self._settled_rate:
            self._climbing = True
            self._before = None
            self._set(max(FIRST_GUESS, self.value // 4))
        elif self._windows >= PROBE_AFTER_WINDOWS and window.at_once >= 0.75 * self.value:
            self._before = (float(self.value), window.rate)
            self._set(self.value * PROBE_FACTOR)
        else:
            self._settled_rate += 0.25 * (window.rate - self._settled_rate)
            self._set(self.value)

    def _probed(self, window: _Window) -> None:
        assert self._before is not None
        value, rate = self._before
        if window.rate > PROBE_GAIN * rate:
            self._settle(self.value, window.rate)
        else:
            self._settle(value, rate)

    def _settle(self, value: float, rate: float) -> None:
        self._climbing = False
        self._before = None
        self._settled_rate = rate
        self._windows = 0
        self._set(value)
