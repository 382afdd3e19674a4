"""How many calls a server should be given at once, where it tells how long they waited.

A server that is full does not refuse calls, it answers late. So a limit watches how late: Ollama's
durations tell the wait for a slot. `throughput_limit` is for servers that tell none.
"""

from __future__ import annotations

from dataclasses import dataclass

from query_mutator.models.calls import Reply

FIRST_GUESS = 2
MOST_AT_ONCE = 1024
NEARLY_ALL = 0.8
TOO_FEW_WAITING = 0.5
TOO_MANY_WAITING = 1.5
"""One call waiting in the queue keeps a slot busy while the client turns round; more only wait."""


@dataclass(frozen=True)
class Ticket:
    """How a call was sent: its number, one of how many at once, under which value of the limit."""

    number: int
    at_once: int
    version: int


class Limit:
    """The number of calls to have under way on one server for one model.

    This one stays: it is for a server that tells its slots, as llama.cpp does. Answers to calls
    that were sent under another value than that of now say nothing about this one.
    """

    def __init__(self, value: int = FIRST_GUESS) -> None:
        self.value = value
        self._version = 0
        self._calls_sent = 0

    def sent(self, at_once: int) -> Ticket:
        """Notes that a call goes out, with itself `at_once` are under way."""
        self._calls_sent += 1
        return Ticket(self._calls_sent, at_once, self._version)

    def answered(self, ticket: Ticket, reply: Reply, latency_s: float) -> None:
        """Learns from an answer, where there is anything to learn."""

    def failed(self, ticket: Ticket) -> None:
        """Notes that a call ended without an answer: nothing is learned from how long it took."""

    def _set(self, value: float) -> None:
        """Begins a version even where the value stays."""
        self.value = min(max(1, round(value)), MOST_AT_ONCE)
        self._version += 1


class Window:
    """Sums over the calls that were sent under one value of a limit."""

    def __init__(self) -> None:
        self.count = 0
        self.latency_s = 0.0
        self._at_once = 0

    def add(self, at_once: int, latency_s: float) -> None:
        self.count += 1
        self.latency_s += latency_s
        self._at_once += at_once

    @property
    def at_once(self) -> float:
        return self._at_once / self.count


class _Waits(Window):
    """Calls whose times tell how many of them waited."""

    wait_s = 0.0

    @property
    def waiting(self) -> float:
        """How many of the calls under way were in the queue: by Little's law, from the times."""
        return self.at_once * self.wait_s / max(self.latency_s, 1e-9)


class QueueWaitLimit(Limit):
    """Doubles until calls wait for a slot, then keeps about one of them waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._doubling = True
        self._least_wait_s = float("inf")
        self._window = _Waits()

    def answered(self, ticket: Ticket, reply: Reply, latency_s: float) -> None:
        # The shortest wait seen is the server's own overhead, not a queue.
        self._least_wait_s = min(self._least_wait_s, reply.queue_s)
        if ticket.version != self._version:
            return
        window = self._window
        window.wait_s += reply.queue_s - self._least_wait_s
        window.add(ticket.at_once, latency_s)
        # The first steps are quick, on little evidence; later ones must not follow chance.
        enough = max(3, self.value // 2) if self._doubling else max(8, self.value)
        if window.count < enough:
            return
        if window.waiting > TOO_MANY_WAITING:
            self._doubling = False
            self._set(window.at_once - window.waiting + 1)
        elif window.waiting < TOO_FEW_WAITING and window.at_once >= NEARLY_ALL * self.value:
            self._set(self.value * 2 if self._doubling else self.value + max(1, self.value // 8))
        elif window.count >= 2 * self.value:
            self._doubling = self._doubling and window.waiting < TOO_FEW_WAITING
            # What was not made use of was not tried: there may be fewer slots.
            self._set(min(self.value, max(FIRST_GUESS, 2 * window.at_once)))

    def _set(self, value: float) -> None:
        super()._set(value)
        self._window = _Waits()
