"""Waiting for what other threads and processes bring about, however busy the machine is."""

from __future__ import annotations

import threading
from collections.abc import Callable

ENOUGH_S = 120.0
"""Within this a test fails in place of hanging; nothing is measured by it."""
POLL_S = 0.01


def wait_until(condition: Callable[[], object], missing: str = "it did not come about") -> None:
    never = threading.Event()
    for _ in range(int(ENOUGH_S / POLL_S)):
        if condition():
            return
        never.wait(POLL_S)
    raise AssertionError(missing)
