"""When a server is left alone: a circuit breaker, and what makes it open.

Where nothing listens, it opens at once. Else a single failure says little: on a server that loses
three calls in ten, a breaker that opens too readily would cost more than the failures do. So it
takes a run of failures with no answer between, longer the more calls are under way; or a call that
timed out, or used up its attempts, while nobody else got an answer either. A refused request (400,
404) is an answer: the server is there.
"""

from __future__ import annotations

import time

from query_mutator.models.calls import Failure

FEWEST_IN_A_ROW = 3
"""Failures in a row where other servers can take over: to move a call costs nothing."""
FEWEST_IN_A_ROW_ALONE = 5
REFUSED = "connection refused"


def nothing_listens(failure: Failure) -> bool:
    """Whether the request cannot even have arrived."""
    return failure.kind == "connection" and REFUSED in failure.reason.lower()


class Breaker:
    """The state of one server's breaker; it belongs to the dispatcher, under its lock."""

    def __init__(self) -> None:
        self.up = True
        self.silent_since: float | None = None
        """When it went down, until it answers a call: a probe's answer alone does not count."""
        self.why = Failure("", "")
        """The failure that opened it last."""
        self._up_since = 0.0
        self._last_answer = 0.0
        self._failures_in_a_row = 0

    def answered(self) -> None:
        """A call was answered; a late one, while it is down, begins its silence anew."""
        self.silent_since = None if self.up else time.monotonic()
        self.responded()

    def responded(self) -> None:
        """Something came back that shows the server at work, if only a refusal."""
        self._last_answer = time.monotonic()
        self._failures_in_a_row = 0

    def is_suspect(
        self,
        failure: Failure,
        *,
        sent: float,
        first_sent: float,
        last_attempt: bool,
        in_flight: int,
        alone: bool,
    ) -> bool:
        """Whether it should answer a probe before it gets more, by a failure that may pass.

        What was sent before its last return says nothing about it.
        """
        if not self.up or sent < self._up_since:
            return False
        self._failures_in_a_row += 1
        if nothing_listens(failure):
            return True
        if failure.kind == "timeout" and self._last_answer < sent:
            return True
        if last_attempt and self._last_answer < first_sent:
            return True
        if alone:
            return self._failures_in_a_row >= max(FEWEST_IN_A_ROW_ALONE, 2 * in_flight)
        return self._failures_in_a_row >= max(FEWEST_IN_A_ROW, in_flight)

    def open(self, failure: Failure) -> None:
        """The server is left alone until it answers a probe."""
        self.up = False
        self.why = failure
        if self.silent_since is None:
            self.silent_since = time.monotonic()

    def close(self) -> None:
        """It has answered a probe."""
        self.up = True
        self._up_since = time.monotonic()
        self._failures_in_a_row = 0
