"""Runs a strategy on a server and measures it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.strategies import Strategy, Workload
from errors import UserError
from model_client.backend import Backend
from model_client.calls import Call
from model_client.client import ModelClient
from model_client.connect import Connection
from servers.simulated import SimulatedChild


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
            client = ModelClient([backend])
            for model in backend.models:
                purpose = next(p for p in ("answer", "mutation") if backend.serves(p, model))
                call = Call(purpose, model, ({"role": "user", "content": "Hello"},), max_tokens=1)
                failure = client.run([call])[0].failure
                if failure is not None:
                    raise UserError(f"{model} at {backend.http.url}: {failure.reason}")

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


def measure(name: str, strategy: Strategy, work: Workload, arena: Arena) -> Result:
    """Runs a strategy with a client of its own."""
    client = arena.client(group_by_model=False if "ungrouped" in name else None)
    latencies: list[float] = []
    seconds, used = timed(
        arena, lambda: latencies.extend(outcome.latency_s for outcome in strategy(client, work))
    )
    counts = client.counts()
    return Result(
        strategy=name,
        batch_size=work.batch_size or "auto",
        calls=len(latencies),
        failed=counts.failed_calls,
        seconds=seconds,
        calls_per_second=len(latencies) / seconds,
        median_latency_s=float(np.median(latencies)),
        p95_latency_s=float(np.quantile(latencies, 0.95)),
        max_in_flight=counts.max_in_flight,
        slot_utilisation=used,
    )
