"""One server as the client sees it: what it has, how much it is given, how it fares."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from model_client.calls import Call, Failure, Reply
from model_client.dialects import Dialect
from model_client.http import HttpServer
from model_client.limits import (
    Limit,
    QueueWaitLimit,
    Ticket,
    ToldLimit,
)
from model_client.throughput_limit import ThroughputLimit

LOAD_S = 0.2
"""A load duration that exceeds the least one of the model by this is a load."""
SWAPS_TO_GROUP = 3
"""A restart makes two models load again, once each; a third load means that they take turns."""
SWAPS_FORGOTTEN_AFTER = 200
SWITCHES_TO_UNGROUP = 3
SUSPECT = {"connection", "timeout"}
"""Failures of a call that make its server suspect at once."""
FAILURES_TO_SUSPECT = 3
"""Other failures must come in a row: the server answers, but not with answers."""
PATIENCE = 0.5
"""Idle slots may cost this part of a swap before another model gets its turn."""


@dataclass(frozen=True)
class BackendStatus:
    """How one server fares."""

    name: str
    url: str
    up: bool
    calls: int
    in_flight: int
    limit: int | None
    """Calls it should be given at once, as found out from its answers; None before the first."""
    grouped: bool


class Backend:
    """A server that calls can be sent to. Its state belongs to the dispatcher, under its lock."""

    def __init__(
        self,
        http: HttpServer,
        dialect: Dialect,
        models: Mapping[str, str],
        *,
        purposes: Iterable[str] | None = None,
        slots: int | None = None,
        group_by_model: bool | None = None,
    ) -> None:
        self.http = http
        self.dialect = dialect
        self.models = dict(models)
        """The models it is asked for, each with what tells its weights from others."""
        self.purposes = frozenset(purposes) if purposes is not None else None
        self.slots = slots
        self.in_flight: Counter[str] = Counter()
        self.calls = 0
        self.up = True
        self._up_since = 0.0
        self._failures_in_a_row = 0
        self.grouped = bool(group_by_model)
        self._may_change_grouping = group_by_model is None
        self._limits: dict[str, Limit] = {}
        self._warm: set[str] = set()
        self._current = ""
        self._draining = False
        self._idle_slots = 0
        self._idle_slot_s = 0.0
        self._looked_at = 0.0
        self._swap_s = 0.0
        self._least_load_s: dict[str, float] = {}
        self._last_loaded = ""
        self._has_answered: set[str] = set()
        self._swaps = 0
        self._calls_at_last_swap = 0
        self._switches_without_load = 0

    @property
    def name(self) -> str:
        return urlsplit(self.http.url).netloc

    def serves(self, purpose: str, model: str) -> bool:
        return model in self.models and (self.purposes is None or purpose in self.purposes)

    def also_serves(self, purpose: str, model: str, digest: str) -> None:
        """Makes it one that is asked for `model` too."""
        self.models.setdefault(model, digest)
        if self.purposes is not None:
            self.purposes |= {purpose}

    def free(self, model: str, max_workers: int | None) -> int:
        """How many more calls for `model` it should be given: at most `max_workers` in all.

        Without such a number, as many as its answers show that it can serve.
        """
        if max_workers is not None:
            room = max_workers - self.in_flight.total()
        else:
            room = self._limit(model).value - self._beside(model)
        if self.is_cold(model):
            # A load belongs to the call that asks for it: that one goes first, alone.
            return 0 if self.in_flight[model] else min(room, 1)
        return room

    def is_cold(self, model: str) -> bool:
        """Whether its next call may have to load the model."""
        return model not in self._warm

    def turn_of(self, model: str, waiting: Counter[str], max_workers: int | None) -> bool:
        """Whether a call for `model` may go now, where models take turns in memory.

        The one that is loaded goes on until it has nothing to do, or until the slots that it
        leaves idle while others wait have cost a good part of what a swap costs.
        """
        if not self._current:
            return True
        self._note_idle(waiting, max_workers or self._limit(self._current).value)
        if model == self._current:
            return not self._draining or waiting.total() == waiting[model]
        return not self.in_flight.total() and (self._draining or not waiting[self._current])

    def goes_on_with(self, model: str) -> bool:
        """Whether `model` is the one that is loaded, and no other is due."""
        return model == self._current and not self._draining

    def _note_idle(self, waiting: Counter[str], at_once: int) -> None:
        now = time.monotonic()
        others = waiting.total() - waiting[self._current]
        idle = min(others, at_once - self.in_flight.total())
        if self._idle_slots > 0:
            self._idle_slot_s += self._idle_slots * (now - self._looked_at)
        self._idle_slots, self._looked_at = idle, now
        if self._idle_slot_s > PATIENCE * self._swap_s * at_once:
            self._draining = True

    def sent(self, model: str) -> Ticket:
        """Notes that a call goes out."""
        if model != self._current:
            self._switches_without_load += 1
            self._draining = False
            self._idle_slots, self._idle_slot_s = 0, 0.0
        self._current = model
        self.calls += 1
        self.in_flight[model] += 1
        return self._limit(model).sent(self._beside(model))

    def answered(self, model: str, ticket: Ticket, reply: Reply, latency_s: float) -> bool:
        """Learns from an answer; True where it has changed how calls are grouped."""
        self.in_flight[model] -= 1
        self._failures_in_a_row = 0
        self._warm.add(model)
        self._limit(model).answered(ticket, reply, latency_s)
        return self._note_load(model, reply)

    def failed(self, model: str, ticket: Ticket) -> None:
        """Notes that a call ended without an answer."""
        self.in_flight[model] -= 1
        self._limit(model).failed(ticket)

    def sent_again(self, model: str, ticket: Ticket) -> Ticket:
        """Notes that a call that failed goes out once more, in the place that it has."""
        self._limit(model).failed(ticket)
        return self._limit(model).sent(self._beside(model))

    def is_suspect(self, failure: Failure, sent: float) -> bool:
        """Whether it should answer a probe before it gets more, by a failure that may pass.

        What was sent before its last return says nothing about it now.
        """
        if sent < self._up_since:
            return False
        self._failures_in_a_row += 1
        return failure.kind in SUSPECT or self._failures_in_a_row >= FAILURES_TO_SUSPECT

    def went_down(self) -> None:
        """It is left alone until it answers a probe; what it had loaded is gone."""
        self.up = False
        self._warm.clear()
        self._has_answered.clear()
        self._last_loaded = ""

    def came_back(self, model: str) -> None:
        """It has answered a probe with `model`."""
        self.up = True
        self._up_since = time.monotonic()
        self._failures_in_a_row = 0
        self._warm.add(model)

    def ask_little(self, purpose: str, model: str, *, num_ctx: int, timeout_s: float) -> None:
        """Asks for one token, or one embedding; raises `CallFailedError` where none comes."""
        if purpose == "embedding":
            path, payload = self.dialect.embed_request(model, ["Hello"], num_ctx=num_ctx)
            self.dialect.read_embeddings(self.http.post(path, payload, timeout_s=timeout_s))
            return
        hello = ({"role": "user", "content": "Hello"},)
        call = Call(purpose, model, hello, max_tokens=1, num_ctx=num_ctx)
        path, payload = self.dialect.chat_request(call)
        self.dialect.read_chat(self.http.post(path, payload, timeout_s=timeout_s))

    def status(self) -> BackendStatus:
        limits = [limit.value for limit in self._limits.values()]
        at_once = max if self.grouped else sum
        return BackendStatus(
            name=self.name,
            url=self.http.url,
            up=self.up,
            calls=self.calls,
            in_flight=self.in_flight.total(),
            limit=at_once(limits) if limits else None,
            grouped=self.grouped,
        )

    @property
    def _slots_per_model(self) -> bool:
        """Ollama gives each model slots of its own; other servers have one model, or share."""
        return self.slots is None and self.dialect.tells_queue_wait

    def _beside(self, model: str) -> int:
        """The calls under way that a call for `model` shares the slots with."""
        return self.in_flight[model] if self._slots_per_model else self.in_flight.total()

    def _limit(self, model: str) -> Limit:
        key = model if self._slots_per_model else ""
        if key not in self._limits:
            if self.slots is not None:
                self._limits[key] = ToldLimit(self.slots)
            elif self._slots_per_model:
                self._limits[key] = QueueWaitLimit()
            else:
                self._limits[key] = ThroughputLimit()
        return self._limits[key]

    def _note_load(self, model: str, reply: Reply) -> bool:
        """Counts how often models take each other's place; True where grouping has changed."""
        # Ollama tells some load time for a loaded model too: the least seen is not a load.
        least_s = self._least_load_s.get(model, 0.0)
        self._least_load_s[model] = min(reply.load_s, self._least_load_s.get(model, reply.load_s))
        load_s = reply.load_s - least_s
        before = self.grouped
        if load_s > LOAD_S:
            self._swap_s = self._swap_s + 0.2 * (load_s - self._swap_s) if self._swap_s else load_s
            if model != self._last_loaded and model in self._has_answered:
                recent = self.calls - self._calls_at_last_swap < SWAPS_FORGOTTEN_AFTER
                self._swaps = self._swaps + 1 if recent else 1
                self._calls_at_last_swap = self.calls
            self._last_loaded = model
            self._switches_without_load = 0
            if self._may_change_grouping and self._swaps >= SWAPS_TO_GROUP:
                self.grouped = True
        elif (
            self.grouped
            and self._may_change_grouping
            and self._switches_without_load > SWITCHES_TO_UNGROUP
        ):
            self.grouped = False
            self._swaps = 0
        self._has_answered.add(model)
        return self.grouped != before
