"""Where only one model fits into a server's memory, calls are grouped by model."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from query_mutator.bench.strategies import Workload
from query_mutator.models.calls import Outcome
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.flows import FlowRunner
from query_mutator.models.roles import Roles
from query_mutator.models.settings import ModelSettings
from query_mutator.models.turns import LOAD_S
from query_mutator.servers.simulated import SimulatedServer
from tests.conftest import SIMULATED_MODELS


async def mixed(work: Workload, env: int) -> list[Outcome]:
    """Steps as in a run: some need the mutator, all need the target."""
    outcomes = []
    for step in range(work.num_steps):
        if (env * 7 + step * 5) % 11 < 5:
            outcomes.append(await work.mutation(env, step))
        outcomes.append(await work.answer(env, step))
    return outcomes


def loads(group_by_model: bool | None, *, max_loaded: int, warm_time_s: float = 0.0) -> int:
    """How often models were loaded, always for the same calls."""
    with SimulatedServer(
        slots=4,
        mean_latency_s=0.02,
        max_loaded=max_loaded,
        load_time_s=1.25 * LOAD_S,
        warm_time_s=warm_time_s,
    ) as server:
        connection = connect(
            ModelSettings(server.url, group_by_model=group_by_model, **SIMULATED_MODELS)
        )
        client = ModelClient(connection.backends)
        runner: FlowRunner[list[Outcome]] = FlowRunner(client, {}, max_workers=4)
        work = Workload(16, 3, 4, Roles(**SIMULATED_MODELS))
        outcomes = runner.run([mixed(work, env) for env in range(work.num_envs)])
        client.close()
        connection.close()
        assert not any(outcome.failed for chain in outcomes for outcome in chain)
        return server.stats.model_loads


def test_models_that_take_turns_are_noticed_and_grouped(caplog: pytest.LogCaptureFixture) -> None:
    # They wait for servers of their own more than they compute: side by side.
    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(3) as pool:
        ungrouped, found, told = pool.map(partial(loads, max_loaded=1), (False, None, True))
    assert told <= found < ungrouped
    (said,) = caplog.messages
    assert "one model at a time" in said


def test_models_that_fit_together_are_not_grouped(caplog: pytest.LogCaptureFixture) -> None:
    assert loads(None, max_loaded=2) == 2
    assert caplog.messages == []


def test_a_server_that_tells_some_load_time_for_loaded_models_is_not_taken_for_one_that_swaps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert loads(None, max_loaded=2, warm_time_s=1.25 * LOAD_S) == 2
    assert caplog.messages == []


def test_calls_made_ahead_cause_no_swap_until_they_are_waited_for() -> None:
    with SimulatedServer(max_loaded=1) as server:
        connection = connect(ModelSettings(server.url, group_by_model=True, **SIMULATED_MODELS))
        client = ModelClient(connection.backends)
        work = Workload(2, 2, 4, Roles(**SIMULATED_MODELS))
        client.run([work.answer(0, 0)])
        client.fetch_ahead(work.mutation(0, 0))
        client.fetch_ahead(work.answer(0, 1))
        client.run([work.answer(1, 0)])
        assert "qwen2.5:3b" not in server.stats.calls_by_model
        client.wait_for_ahead()
        assert server.stats.calls_by_model == {"qwen2.5:3b": 1, "llama3.2:3b": 3}
        client.close()
        connection.close()
