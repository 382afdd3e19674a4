"""When a rollout is not worth learning from: most of it failed, so it is collected once more."""

from __future__ import annotations

import logging
import time
from collections import Counter

from query_mutator.base.errors import ServerUnavailableError
from query_mutator.models.outages import clock
from query_mutator.runs.log import RolloutLog

logger = logging.getLogger(__name__)

PAUSE_FIRST_S = 0.5
PAUSE_LIMIT_S = 15.0


class Repeats:
    """The attempts at one rollout: it is given up after `max_outage_s` of them."""

    def __init__(self, max_failed_share: float, max_outage_s: float) -> None:
        self.count = 0
        self._max_failed_share, self._max_outage_s = max_failed_share, max_outage_s
        self._since = 0.0

    def needs_another(self, log: RolloutLog, failures: Counter[str]) -> bool:
        """Whether too much of what was collected failed; the calls' `failures` are told.

        Raises `ServerUnavailableError` where that has gone on for too long.
        """
        failed, steps = log.masked(), len(log.steps)
        if failed <= self._max_failed_share * steps:
            return False
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since >= self._max_outage_s:
            raise ServerUnavailableError(
                f"{failed} of {steps} transitions of a rollout failed, again and again for "
                f"{clock(now - self._since)} ({log.first_failure()}); --max-failed-share allows "
                "more"
            )
        self.count += 1
        kinds = ", ".join(f"{count} {kind}" for kind, count in failures.most_common())
        logger.warning(
            "rollout %d is collected again: %d of its %d transitions failed (calls: %s)",
            log.update,
            failed,
            steps,
            kinds or "none failed",
        )
        return True

    def pause(self) -> None:
        """Gives the server a moment, longer each time, within the time that there is."""
        left_s = self._since + self._max_outage_s - time.monotonic()
        pause_s = min(PAUSE_FIRST_S * 2.0 ** (self.count - 1), PAUSE_LIMIT_S)
        time.sleep(max(0.0, min(pause_s, left_s)))
