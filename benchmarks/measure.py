"""Runs a strategy on a server and measures it."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from benchmarks.strategies import Answered, Strategy, Workload
from model_client.client import ModelClient
from model_client.connect import Connection


@dataclass(frozen=True)
class Result:
    """What a strategy took."""

    strategy: str
    batch_size: int
    calls: int
    failed: int
    seconds: float
    calls_per_second: float
    median_latency_s: float
    p95_latency_s: float
    max_in_flight: int
    slot_utilisation: float | None
    """The least time the calls need on the slots over the time taken; None where untold."""


def measure(
    name: str, strategy: Strategy, work: Workload, connection: Connection, *, slots: int | None
) -> Result:
    """Runs a strategy with a client of its own, so that nothing is remembered from another."""
    client = ModelClient(connection.http, connection.dialect)
    started = time.monotonic()
    answered = strategy(client, work)
    seconds = time.monotonic() - started
    latencies = [outcome.latency_s for _, outcome in answered]
    counts = client.counts()
    least = least_time_s(answered, slots) if slots else None
    return Result(
        strategy=name,
        batch_size=work.batch_size,
        calls=len(answered),
        failed=counts.failed_calls,
        seconds=seconds,
        calls_per_second=len(answered) / seconds,
        median_latency_s=float(np.median(latencies)),
        p95_latency_s=float(np.quantile(latencies, 0.95)),
        max_in_flight=counts.max_in_flight,
        slot_utilisation=least / seconds if least else None,
    )


def least_time_s(answered: Answered, slots: int) -> float | None:
    """max(Σd / S, the longest chain), with the d that the server tells; None where it does not."""
    chains: dict[int, float] = defaultdict(float)
    for env, outcome in answered:
        if not outcome.reply.served_s:
            return None
        chains[env] += outcome.reply.served_s
    return max(sum(chains.values()) / slots, max(chains.values()))
