"""What a person sees while a run is under way."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence

from query_mutator.base.terminal import printable, progress_bar
from query_mutator.models.backend import BackendStatus
from query_mutator.models.client import CallCounts
from query_mutator.models.outages import Outage

RECENT_EPISODES = 200
RATE_WINDOW_S = 10.0


class Progress:
    """A bar with reward, calls per second, calls in flight, failures and the time left.

    Where the output is not a terminal, a plain line for each logged update takes its place.
    """

    def __init__(self, total_steps: int, done_steps: int, *, max_workers: int | None) -> None:
        self._bar = progress_bar(total_steps, done_steps, smoothing=0.05)
        self._max_workers = max_workers
        self._total = total_steps
        self._done = done_steps
        self._first = done_steps
        self._started = time.monotonic()
        self._recent: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._calls: deque[tuple[float, int]] = deque()

    @property
    def is_bar(self) -> bool:
        return not self._bar.disable

    def step(
        self, episode_return: float | None, counts: CallCounts, servers: Sequence[BackendStatus]
    ) -> None:
        """One environment step has ended."""
        self._done += 1
        if episode_return is not None:
            self._recent.append(episode_return)
        self._bar.set_description_str(self._figures(counts, servers), refresh=False)
        self._bar.update()

    def waiting(self, outage: Outage | None) -> None:
        """Nothing has come for a moment: the bar says what is waited for, and for how long."""
        if outage is not None and self.is_bar:
            self._bar.set_description_str(printable(str(outage)))

    def back(self, steps: int) -> None:
        """Steps that do not count after all: their rollout is collected again."""
        self._done -= steps
        self._bar.update(-steps)

    def update_done(
        self, update: int, updates: int, counts: CallCounts, servers: Sequence[BackendStatus]
    ) -> None:
        """An update has been logged."""
        if self.is_bar:
            return
        elapsed = time.monotonic() - self._started
        pace = elapsed / max(1, self._done - self._first)
        left = int(pace * max(0, self._total - self._done))
        print(
            f"update {update}/{updates}  {self._done}/{self._total} steps"
            f", {self._figures(counts, servers)}, {left // 60}:{left % 60:02d} left",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        self._bar.close()

    def _figures(self, counts: CallCounts, servers: Sequence[BackendStatus]) -> str:
        reward = f"{sum(self._recent) / len(self._recent):+.3f}" if self._recent else "–"
        return (
            f"reward {reward} {self._rate(counts.model_calls):.1f} calls/s "
            f"{self._in_flight(servers)} in flight {told_failures(counts)}"
        )

    def _in_flight(self, servers: Sequence[BackendStatus]) -> str:
        """Calls under way of those that may be: a figure for each server, `down` for a dead one."""
        shown = []
        for server in servers:
            limit = self._max_workers or server.limit
            of = f"/{limit}" if limit else ""
            shown.append(f"{server.in_flight}{of}" if server.up else "down")
        return "+".join(shown)

    def _rate(self, calls: int) -> float:
        now = time.monotonic()
        self._calls.append((now, calls))
        while now - self._calls[0][0] > RATE_WINDOW_S and len(self._calls) > 2:
            self._calls.popleft()
        first_time, first_calls = self._calls[0]
        return (calls - first_calls) / max(now - first_time, 1e-9) if now > first_time else 0.0


def told_failures(counts: CallCounts) -> str:
    """How many calls failed, and of what, the most frequent first.

    >>> from collections import Counter
    >>> told_failures(CallCounts(failed_calls=3, failures_by_kind=Counter(timeout=2, busy=1)))
    '3 failed (2 timeout, 1 busy)'
    """
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.failures_by_kind.most_common())
    return f"{counts.failed_calls} failed" + (f" ({kinds})" if kinds else "")
