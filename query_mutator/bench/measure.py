"""Runs a strategy on a server and measures it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from query_mutator.base.errors import UserError
from query_mutator.base.flags import AUTO
from query_mutator.bench.strategies import WITHOUT_GROUPING, Strategy, Workload
from query_mutator.models.backend import Backend
from query_mutator.models.calls import CallFailedError
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import Connection
from query_mutator.servers.simulated import SimulatedChild

WATCH_EVERY_S = 0.005
NUM_CTX = 2048
LOAD_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Result:
    """What a strategy took."""

    strategy: str
    batch_size: int | str
    calls: int
    failed: int
    seconds: float
    calls_per_second: float
    median_latency_s: float | None
    p95_latency_s: float | None
    max_in_flight: int | None
    slot_utilisation: float | None
    """The time that the calls need at best on all slots, over the time taken; None where untold."""


@dataclass(frozen=True)
class Arena:
    """The servers that everything is measured on."""

    urls: list[str]
    connection: Connection
    children: Sequence[SimulatedChild] = ()
    slots: int | None = None
    """The slots of all servers together, where they are simulated."""

    def busy_s(self) -> float:
        """The time for which calls have held slots so far."""
        return sum(float(child.stats()["busy_s"]) for child in self.children)

    def load_models(self) -> None:
        """Has each model answer once on each server, while no clock runs."""
        for backend in self.connection.backends:
            for model in backend.models:
                purpose = next(p for p in ("answer", "mutation") if backend.serves(p, model))
                try:
                    backend.ask_little(purpose, model, num_ctx=NUM_CTX, timeout_s=LOAD_TIMEOUT_S)
                except CallFailedError as error:
                    raise UserError(f"{model} at {backend.http.url}: {error}") from error

    def client(self, *, group_by_model: bool | None = None) -> ModelClient:
        """A client that knows nothing from another one, but that the models are loaded."""
        backends = []
        for old in self.connection.backends:
            backend = Backend(
                old.http,
                old.dialect,
                old.models,
                purposes=old.purposes,
                slots=old.slots,
                group_by_model=group_by_model,
            )
            for model in old.models:
                backend.came_back(model)
            backends.append(backend)
        return ModelClient(backends)


def timed(arena: Arena, work: Callable[[], object]) -> tuple[float, float | None]:
    """How long `work` took, and the share of the slots' time that it made use of."""
    busy_before, started = arena.busy_s(), time.monotonic()
    work()
    seconds = time.monotonic() - started
    if arena.slots is None:
        return seconds, None
    return seconds, (arena.busy_s() - busy_before) / arena.slots / seconds


class Watch:
    """Looks at a client from time to time: calls answered, and calls under way."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._ended = threading.Event()
        self._seen: list[tuple[float, int, int]] = []
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def between(self, first: float, last: float) -> tuple[int, float, int]:
        """From the answer numbered `first` to `last`: answers, seconds, most calls under way."""
        span = [seen for seen in self._seen if first <= seen[1] <= last]
        if len(span) < 2:
            raise UserError("too few calls for what came after the first of them")
        calls, seconds = span[-1][1] - span[0][1], span[-1][0] - span[0][0]
        return calls, seconds, max(in_flight for _, _, in_flight in span)

    def _look(self) -> None:
        while not self._ended.wait(WATCH_EVERY_S):
            counts = self._client.counts()
            self._seen.append((time.monotonic(), counts.model_calls, counts.in_flight))


def measured(
    name: str, strategy: Strategy, work: Workload, arena: Arena, *, after: int = 0
) -> list[Result]:
    """As `measure`, and once more without the first calls, in which a limit is being found.

    The last tenth is left out too: there the work runs out, whatever the limit.
    """
    if not after:
        return [measure(name, strategy, work, arena)]
    client = arena.client()
    with Watch(client) as watch:
        whole = measure(name, strategy, work, arena, client=client)
    calls, seconds, at_once = watch.between(after, 0.9 * whole.calls)
    label = f"{name}, from call {after}"
    return [whole, summarised(label, work, calls, seconds=seconds, max_in_flight=at_once)]


def measure(
    name: str,
    strategy: Strategy,
    work: Workload,
    arena: Arena,
    *,
    client: ModelClient | None = None,
) -> Result:
    """Runs a strategy, with a client of its own where none is given."""
    client = client or arena.client(group_by_model=False if name in WITHOUT_GROUPING else None)
    latencies: list[float] = []
    seconds, used = timed(
        arena, lambda: latencies.extend(outcome.latency_s for outcome in strategy(client, work))
    )
    counts = client.counts()
    return summarised(
        name,
        work,
        len(latencies),
        latencies,
        seconds=seconds,
        used=used,
        failed=counts.failed_calls,
        max_in_flight=counts.max_in_flight,
    )


def summarised(
    name: str,
    work: Workload,
    calls: int,
    latencies: Sequence[float] = (),
    *,
    seconds: float,
    used: float | None = None,
    failed: int = 0,
    max_in_flight: int | None = None,
) -> Result:
    """The result of so many calls in so many seconds."""
    return Result(
        strategy=name,
        batch_size=work.batch_size or AUTO,
        calls=calls,
        failed=failed,
        seconds=seconds,
        calls_per_second=calls / seconds,
        median_latency_s=float(np.median(latencies)) if latencies else None,
        p95_latency_s=float(np.quantile(latencies, 0.95)) if latencies else None,
        max_in_flight=max_in_flight,
        slot_utilisation=used,
    )
