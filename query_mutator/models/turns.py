"""Which model may be asked now, on a server that has room in memory for only one of them.

Two models that take turns show up as load durations on the answers; then, or where the user says
so, calls are grouped: one model goes on until it has nothing to do, or until the slots that it
leaves idle while others wait have cost a good part of what a swap costs.
"""

from __future__ import annotations

import time
from collections import Counter

LOAD_S = 0.2
"""A load duration that exceeds the least one of the model by this is a load."""
RELOADS_TO_GROUP = 3
"""A restart makes two models load again, once each; a third time means that they take turns."""
RELOADS_FORGOTTEN_AFTER = 200
SWITCHES_TO_UNGROUP = 3
PATIENCE = 0.5
"""Idle slots may cost this part of a swap before another model gets its turn."""


class Turns:
    """The turns of one server's models; with `grouped` None it finds out whether they take any."""

    def __init__(self, grouped: bool | None) -> None:
        self.grouped = bool(grouped)
        self._may_change = grouped is None
        self._current = ""
        self._draining = False
        self._idle_slots = 0
        self._idle_slot_s = 0.0
        self._looked_at = 0.0
        self._swap_s = 0.0
        self._least_load_s: dict[str, float] = {}
        self._last_loaded = ""
        self._has_answered: set[str] = set()
        self._calls = 0
        self._reloads = 0
        self._last_reload = 0
        """The number of the call that was the last to find its model gone."""
        self._switches_without_load = 0

    def may_go(self, model: str, waiting: Counter[str], in_flight: int, at_once: int) -> bool:
        """Whether a call for `model` may go, with others waiting and under way."""
        if not self.grouped or not self._current:
            return True
        self._note_idle(waiting, in_flight, at_once)
        if model == self._current:
            return not self._draining or waiting.total() == waiting[model]
        return not in_flight and (self._draining or not waiting[self._current])

    def goes_on_with(self, model: str) -> bool:
        """Whether a call for `model` costs no swap and delays none."""
        return not self.grouped or (model == self._current and not self._draining)

    def sent(self, model: str) -> None:
        """Notes that a call goes out."""
        self._calls += 1
        if model != self._current:
            self._current = model
            self._switches_without_load += 1
            self._draining = False
            self._idle_slots, self._idle_slot_s = 0, 0.0

    def answered(self, model: str, told_load_s: float) -> bool:
        """Learns from the load duration of an answer; True where grouping has changed by it."""
        # Ollama tells some load time for a loaded model too: the least seen is not a load.
        load_s = told_load_s - self._least_load_s.get(model, 0.0)
        self._least_load_s[model] = min(told_load_s, self._least_load_s.get(model, told_load_s))
        before = self.grouped
        if load_s > LOAD_S:
            self._note_load(model, load_s)
        elif (
            self._may_change and self.grouped and self._switches_without_load > SWITCHES_TO_UNGROUP
        ):
            self.grouped = False
            self._reloads = 0
        self._has_answered.add(model)
        return self.grouped != before

    def forget(self) -> None:
        """What the server had loaded is gone with it."""
        self._has_answered.clear()
        self._last_loaded = ""

    def _note_load(self, model: str, load_s: float) -> None:
        self._swap_s = self._swap_s + 0.2 * (load_s - self._swap_s) if self._swap_s else load_s
        if model != self._last_loaded and model in self._has_answered:
            recent = self._calls - self._last_reload < RELOADS_FORGOTTEN_AFTER
            self._reloads = self._reloads + 1 if recent else 1
            self._last_reload = self._calls
        self._last_loaded = model
        self._switches_without_load = 0
        if self._may_change and self._reloads >= RELOADS_TO_GROUP:
            self.grouped = True

    def _note_idle(self, waiting: Counter[str], in_flight: int, at_once: int) -> None:
        now = time.monotonic()
        if self._idle_slots > 0:
            self._idle_slot_s += self._idle_slots * (now - self._looked_at)
        others = waiting.total() - waiting[self._current]
        self._idle_slots, self._looked_at = min(others, at_once - in_flight), now
        if self._idle_slot_s > PATIENCE * self._swap_s * at_once:
            self._draining = True
