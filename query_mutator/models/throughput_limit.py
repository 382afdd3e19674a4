"""How many calls to give at once to a server that tells nothing of its slots or its queue.

Two things can be seen from outside. Where calls take about equally long, more of them at once
either leave their latency as it is, or, when the slots are full, make it longer. Where latencies
vary much, their means are mostly chance; but then calls overtake each other, and a call that is
answered before an older one was served beside it: with a first-come-first-served queue, the older
calls still under way, and itself, all held slots. That is a lower bound for the slots, and when
twenty answers have shown no more than half of the calls under way side by side, a close one.
"""

from __future__ import annotations

import math

from query_mutator.models.calls import Reply
from query_mutator.models.limits import Limit, Ticket, Window

CLIMB_WINDOW = 20
STEADY_WINDOW = 60
VARIED = 0.32
"""Deviation of latencies over their mean from which on overtaking tells more than they do."""
MOSTLY_BESIDE = 0.85
SLOWED = 0.2
FAST_GROWTH_BELOW = 16
PROBE_AFTER_WINDOWS = 4
PROBE_FACTOR = 1.5
PROBE_GAIN = 1.25
FELL = 0.4
"""A rate that falls by this share means that the server has changed: begin again."""


class _Window(Window):
    """Calls whose latencies vary, and of which some were served at once."""

    beside = 0
    """The most calls that were seen to be served at once."""
    _squares = 0.0

    def add(self, at_once: int, latency_s: float) -> None:
        super().add(at_once, latency_s)
        self._squares += latency_s**2

    @property
    def mean_s(self) -> float:
        return max(self.latency_s / self.count, 1e-9)

    @property
    def rate(self) -> float:
        """Answers a second, by Little's law."""
        return self.at_once / self.mean_s

    @property
    def variation(self) -> float:
        """Deviation of the latencies over their mean."""
        return math.sqrt(max(0.0, self._squares / self.count - self.mean_s**2)) / self.mean_s

    @property
    def queued_by_overtaking(self) -> bool:
        """Whether latencies vary, and still no more than half of the calls were served at once."""
        half = self.beside <= 0.5 * round(self.at_once)
        # A single one also means that nothing overtook: calls may come and go in step.
        return self.variation >= VARIED and half and (self.beside > 1 or self.at_once <= 2)

    def error_beside(self, other_count: int) -> float:
        """Relative standard error of the quotient of this mean latency and that of others."""
        return self.variation * math.sqrt(1 / self.count + 1 / other_count)


class ThroughputLimit(Limit):
    """Doubles until the slots are full, then stays; looks again from time to time."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: set[int] = set()
        self._window = _Window()
        self._climbing = True
        self._unloaded_s = 0.0
        self._unloaded_count = 0
        """Latencies of the windows in which the slots were not full."""
        self._settled: _Window | None = None
        self._before_probe: tuple[int, _Window] | None = None
        self._windows = 0

    def sent(self, at_once: int) -> Ticket:
        ticket = super().sent(at_once)
        self._under_way.add(ticket.number)
        return ticket

    def failed(self, ticket: Ticket) -> None:
        self._under_way.discard(ticket.number)

    def answered(self, ticket: Ticket, reply: Reply, latency_s: float) -> None:
        self._under_way.discard(ticket.number)
        if ticket.version != self._version:
            return
        older = sum(number < ticket.number for number in self._under_way)
        window = self._window
        window.beside = max(window.beside, older + 1)
        window.add(ticket.at_once, latency_s)
        enough = (
            max(CLIMB_WINDOW, 2 * self.value)
            if self._climbing
            else max(STEADY_WINDOW, 3 * self.value)
        )
        if window.count < enough:
            return
        if self._climbing:
            self._climb(window)
        elif self._before_probe is not None:
            self._probed(window, *self._before_probe)
        else:
            self._watch(window)

    def _set(self, value: float) -> None:
        super()._set(value)
        self._window = _Window()

    def _climb(self, window: _Window) -> None:
        slots = self._full_slots(window)
        if slots is not None:
            self._settle(_with_one_waiting(slots))
        elif window.at_once < 0.75 * self.value:  # there are no more calls to make at once
            self._settle(self.value)
        else:
            self._unloaded_s += window.latency_s
            self._unloaded_count += window.count
            self._set(self.value * (2 if self.value < FAST_GROWTH_BELOW else PROBE_FACTOR))

    def _full_slots(self, window: _Window) -> float | None:
        """How many slots there are, where they are full."""
        varied = window.variation >= VARIED
        if window.queued_by_overtaking:
            return window.beside
        if varied and window.beside >= MOSTLY_BESIDE * window.at_once:
            return None
        if not self._unloaded_count:
            return None
        slowed = window.mean_s / (self._unloaded_s / self._unloaded_count)
        error = window.error_beside(self._unloaded_count)
        if slowed < 1 + max(SLOWED, 2.5 * error):
            return None
        by_latency = window.at_once / slowed
        if varied and window.beside > 1:
            by_latency = min(by_latency, PROBE_GAIN * window.beside)
        return max(window.beside, by_latency)

    def _watch(self, window: _Window) -> None:
        self._windows += 1
        settled, self._settled = self._settled, window
        if settled is not None:
            error = 4 * window.error_beside(settled.count)
            if window.rate < settled.rate * (1 - max(FELL, error)):
                self._begin_again()
                return
        if window.queued_by_overtaking and window.beside > 1:
            self._settle(_with_one_waiting(window.beside))
        elif window.at_once >= 0.75 * self.value and (
            self._windows >= PROBE_AFTER_WINDOWS or window.beside >= 0.95 * self.value
        ):
            self._before_probe = (self.value, window)
            self._set(self.value * PROBE_FACTOR)
        else:
            self._set(self.value)

    def _probed(self, window: _Window, value: int, before: _Window) -> None:
        faster = window.variation < VARIED and window.rate > PROBE_GAIN * before.rate
        self._settle(self.value if faster or window.beside > value else value)

    def _settle(self, value: float) -> None:
        self._climbing = False
        self._before_probe = self._settled = None
        self._windows = 0
        self._set(value)

    def _begin_again(self) -> None:
        self._climbing = True
        self._settled = None
        self._unloaded_s, self._unloaded_count = 0.0, 0
        self._set(max(2, self.value // 4))


def _with_one_waiting(slots: float) -> float:
    """A call that waits keeps a slot busy while the client turns round."""
    return slots + max(1.0, 0.1 * slots)
