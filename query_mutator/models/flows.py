"""Chains of model calls, each at its own pace, with everything else done in batches.

A flow is a coroutine: it awaits what it needs, a `Call` or another request such as `Encode`,
which a batched function answers. Threads do I/O only; the caller's thread advances the flows, and
answers all the batched requests of one kind together.
"""

from __future__ import annotations

import itertools
import queue
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from query_mutator.models.calls import Call, Outcome, Request
from query_mutator.models.client import TICK_S, ModelClient
from query_mutator.models.encoders import Vectors

Result = TypeVar("Result")
Flow = Coroutine[Any, Any, Result]
BatchHandler = Callable[[Sequence[Any]], Sequence[Any]]
Handlers = Mapping[type[Any], BatchHandler]

AT_ONCE = 64
"""Flows under way for each server where it is not known how many calls it can serve."""


@dataclass(frozen=True)
class Encode(Request[Vectors]):
    """The embeddings of some texts: a row of unit length for each."""

    texts: tuple[str, ...]


class FlowRunner(Generic[Result]):
    """Advances flows as their answers arrive, with at most `max_workers` calls on a server.

    With None, each server is given as many as it shows that it can serve.
    """

    def __init__(
        self,
        client: ModelClient,
        handlers: Handlers,
        *,
        max_workers: int | None = 8,
    ) -> None:
        self.client = client
        self.max_workers = max_workers
        self._handlers = dict(handlers)
        self._answered: queue.SimpleQueue[tuple[int, Outcome]] = queue.SimpleQueue()
        self._flows: dict[int, Flow[Result]] = {}
        self._progress: dict[int, tuple[int, int]] = {}
        """How far each flow is: the number it was started with, and its calls so far."""
        self._new: list[tuple[int, None]] = []
        self._finished: list[tuple[int, Result]] = []

    @property
    def pending(self) -> int:
        """How many flows were started and not yet handed back by `wait`."""
        return len(self._flows) + len(self._finished)

    def start(self, key: int, flow: Flow[Result], *, progress: int = 0) -> None:
        """Takes up `flow`; it advances in `wait`, which hands back its result under `key`.

        Where calls wait for a server, those of the flows with the least progress go first.
        """
        if key in self._flows:
            flow.close()
            raise ValueError(f"a flow with the key {key!r} is already running")
        self._flows[key] = flow
        self._progress[key] = (progress, 0)
        self._new.append((key, None))

    def wait(self) -> list[tuple[int, Result]]:
        """The results of the flows that have ended: at least one, if any is pending."""
        new, self._new = self._new, []
        try:
            self._advance(new)
            while not self._finished and self._flows:
                arrived = [self._next_answer()]
                while not self._answered.empty():
                    arrived.append(self._answered.get())
                self._advance(arrived)
        except BaseException:
            self.close()
            raise
        finished, self._finished = self._finished, []
        return finished

    def close(self) -> None:
        """Forgets all flows, and what is still to come for them."""
        for flow in self._flows.values():
            flow.close()  # one that has not begun would be told as never awaited
        for kept in (self._flows, self._progress, self._new, self._finished):
            kept.clear()
        self._answered = queue.SimpleQueue()

    def _next_answer(self) -> tuple[int, Outcome]:
        while (on_wait := self.client.on_wait) is not None:
            try:
                return self._answered.get(timeout=TICK_S)
            except queue.Empty:
                on_wait()
        return self._answered.get()

    def each(self, flows: Iterable[Flow[Result]]) -> Iterator[tuple[int, Result]]:
        """The number and the result of every flow, as they end; not all are begun at once.

        Twice as many are under way as the servers are given calls: none waits for work.
        """
        for_each_server = 2 * self.max_workers if self.max_workers else AT_ONCE
        at_once = for_each_server * len(self.client.backends)
        waiting = enumerate(flows)
        while True:
            for number, flow in itertools.islice(waiting, at_once - self.pending):
                self.start(number, flow, progress=number)
            if not self.pending:
                return
            yield from self.wait()

    def run(self, flows: Sequence[Flow[Result]]) -> list[Result]:
        """The results of all `flows`, in their order."""
        for key, flow in enumerate(flows):
            self.start(key, flow)
        results: dict[int, Result] = {}
        while self.pending:
            results.update(self.wait())
        return [results[key] for key in range(len(flows))]

    def _advance(self, ready: Sequence[tuple[int, Any]]) -> None:
        while ready:
            requests: dict[type, list[tuple[int, Any]]] = defaultdict(list)
            for key, value in ready:
                try:
                    request = self._flows[key].send(value)
                except StopIteration as stop:
                    del self._flows[key], self._progress[key]
                    self._finished.append((key, stop.value))
                    continue
                if isinstance(request, Call):
                    self._submit(key, request)
                else:
                    requests[type(request)].append((key, request))
            ready = []
            for kind, asked in requests.items():
                results = self._handlers[kind]([request for _, request in asked])
                ready.extend((key, result) for (key, _), result in zip(asked, results, strict=True))

    def _submit(self, key: int, call: Call) -> None:
        begun, calls = self._progress[key]
        self._progress[key] = (begun, calls + 1)
        future = self.client.submit(
            call, max_workers=self.max_workers, priority=self._progress[key]
        )
        answered = self._answered
        future.add_done_callback(lambda done: answered.put((key, done.result())))


def encode_handler(encode: Callable[[Sequence[str]], Vectors]) -> BatchHandler:
    """A handler for `Encode`: the texts of all requests together, the rows given back to each."""

    def handle(requests: Sequence[Encode]) -> list[Vectors]:
        rows = encode([text for request in requests for text in request.texts])
        results, start = [], 0
        for request in requests:
            results.append(rows[start : start + len(request.texts)])
            start += len(request.texts)
        return results

    return handle
