"""One server as the client sees it: what it has, how much it is given, how it fares."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from query_mutator.models.breaker import Breaker, nothing_listens
from query_mutator.models.calls import Call, Failure, Reply
from query_mutator.models.dialects import Dialect
from query_mutator.models.http import HttpServer
from query_mutator.models.limits import Limit, QueueWaitLimit, Ticket
from query_mutator.models.throughput_limit import ThroughputLimit
from query_mutator.models.turns import Turns

HOLD_LIMIT_S = 60.0
"""A call that timed out keeps its place as long as it was waited for, but no longer than this."""


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
        self.breaker = Breaker()
        self._held: dict[int, str] = {}
        """The models of calls that timed out and that the server may still be at work on."""
        self._numbers = itertools.count()
        self._answered_models: set[str] = set()
        self._turns = Turns(group_by_model)
        self._limits: dict[str, Limit] = {}
        self._warm: set[str] = set()

    @property
    def name(self) -> str:
        return urlsplit(self.http.url).netloc

    @property
    def up(self) -> bool:
        """Whether it is asked; one that is down is left alone until it answers a probe."""
        return self.breaker.up

    @property
    def silent_since(self) -> float | None:
        """When it went down, if it has answered no call since."""
        return self.breaker.silent_since

    @property
    def why_down(self) -> str:
        """Why it was left alone, in a few words."""
        url, reason = self.http.url, self.breaker.why.reason
        return reason.replace(f"connection to {url} failed: ", "").replace(f" from {url}", "")

    @property
    def has_answered(self) -> bool:
        """Whether it has ever answered a call."""
        return bool(self._answered_models)

    def has_answered_with(self, model: str) -> bool:
        return model in self._answered_models

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
        room = self.room(model, max_workers)
        if self.is_cold(model):
            # A load belongs to the call that asks for it: that one goes first, alone.
            return 0 if self.in_flight[model] else min(room, 1)
        return room

    def room(self, model: str, max_workers: int | None) -> int:
        """How many more calls would be within the limit."""
        if max_workers is not None:
            return max_workers - self.in_flight.total()
        return self._limit(model).value - self._beside(model)

    def is_cold(self, model: str) -> bool:
        """Whether its next call may have to load the model."""
        return model not in self._warm

    @property
    def grouped(self) -> bool:
        """Whether its models are asked in turns, as only one fits into its memory."""
        return self._turns.grouped

    def turn_of(self, model: str, waiting: Counter[str], max_workers: int | None) -> bool:
        """Whether a call for `model` may go now, as far as turns go; `waiting` is by model."""
        at_once = max_workers or self._limit(model).value
        return self._turns.may_go(model, waiting, self.in_flight.total(), at_once)

    def goes_on_with(self, model: str) -> bool:
        """Whether a call for `model` that nobody waits for would be in nobody's way."""
        return self._turns.goes_on_with(model)

    def sent(self, model: str) -> Ticket:
        """Notes that a call goes out."""
        self._turns.sent(model)
        self.calls += 1
        self.in_flight[model] += 1
        return self._limit(model).sent(self._beside(model))

    def answered(self, model: str, ticket: Ticket, reply: Reply, latency_s: float) -> bool:
        """Learns from an answer; True where it has changed how calls are grouped."""
        self.in_flight[model] -= 1
        self.breaker.answered()
        self._answered_models.add(model)
        self._warm.add(model)
        self._limit(model).answered(ticket, reply, latency_s)
        return self._turns.answered(model, reply.load_s)

    def failed(self, model: str, ticket: Ticket) -> None:
        """Notes that a call ended without an answer; its place is still taken."""
        self._limit(model).failed(ticket)

    def take_place(self, model: str) -> None:
        """Counts a call as under way."""
        self.in_flight[model] += 1

    def leave_place(self, model: str) -> None:
        """Counts a call as gone."""
        self.in_flight[model] -= 1

    def hold_place(self, model: str) -> int:
        """Keeps the place of a call that timed out; the number is for `free_held`."""
        number = next(self._numbers)
        self._held[number] = model
        return number

    def free_held(self, number: int) -> None:
        """Gives a held place free, unless it is already."""
        model = self._held.pop(number, None)
        if model is not None:
            self.leave_place(model)

    @property
    def hold_s(self) -> float:
        """How long the server may still be at work on a call that timed out."""
        return min(self.http.timeout_s, HOLD_LIMIT_S)

    def sent_again(self, model: str, ticket: Ticket) -> Ticket:
        """Notes that a call that failed goes out once more, in the place that it has."""
        self._limit(model).failed(ticket)
        return self._limit(model).sent(self._beside(model))

    def went_down(self, failure: Failure) -> None:
        """It is left alone until it answers a probe; what it had loaded is gone."""
        self.breaker.open(failure)
        self._warm.clear()
        self._turns.forget()
        if nothing_listens(failure):  # a server that has ended holds no call
            for number in list(self._held):
                self.free_held(number)

    def came_back(self, model: str | None) -> None:
        """It has answered a probe, with `model` if with any."""
        self.breaker.close()
        if model is not None:
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
                self._limits[key] = Limit(self.slots + 1)  # with one call waiting
            elif self._slots_per_model:
                self._limits[key] = QueueWaitLimit()
            else:
                self._limits[key] = ThroughputLimit()
        return self._limits[key]
