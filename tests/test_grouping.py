"""Where only one model fits into a server's memory, calls are grouped by model."""

from __future__ import annotations

import logging

import pytest

from query_mutator.bench.strategies import Workload
from query_mutator.models.calls import Outcome
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.flows import FlowRunner
from query_mutator.models.roles import Roles
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.simulated import SimulatedServer
from tests.conftest import SIMULATED_MODELS

LOAD_S = 0.25


async def mixed(work: Workload, env: int) -> list[Outcome]:
    """Steps as in a run: some need the mutator, all need the target."""
    outcomes = []
    for step in range(work.num_steps):
        if (env * 7 + step * 5) % 11 < 5:
            outcomes.append(await work.mutation(env, step))
        outcomes.append(await work.answer(env, step))
    return outcomes


def loads_and_lines(
    caplog: pytest.LogCaptureFixture,
    *,
    max_loaded: int,
    group_by_model: bool | None,
    warm_time_s: float = 0.0,
) -> tuple[int, list[str]]:
    """How often models were loaded for the same calls, and what the user was told."""
    caplog.clear()
    with SimulatedServer(
        slots=4,
        mean_latency_s=0.1,
        max_loaded=max_loaded,
        load_time_s=LOAD_S,
        warm_time_s=warm_time_s,
    ) as server:
        connection = connect(
            ModelSettings(server.url, group_by_model=group_by_model, **SIMULATED_MODELS)
        )
        client = ModelClient(connection.backends)
        runner: FlowRunner[list[Outcome]] = FlowRunner(client, {}, max_workers=4)
        work = Workload(16, 6, 4, Roles(**SIMULATED_MODELS))
        with caplog.at_level(logging.WARNING):
            outcomes = runner.run([mixed(work, env) for env in range(work.num_envs)])
        client.close()
        assert not any(outcome.failed for chain in outcomes for outcome in chain)
        return server.stats.model_loads, [record.getMessage() for record in caplog.records]


def test_models_that_take_turns_are_noticed_and_grouped(caplog: pytest.LogCaptureFixture) -> None:
    ungrouped, _ = loads_and_lines(caplog, max_loaded=1, group_by_model=False)
    found, said = loads_and_lines(caplog, max_loaded=1, group_by_model=None)
    told, _ = loads_and_lines(caplog, max_loaded=1, group_by_model=True)
    assert told <= found < ungrouped
    assert [line for line in said if "one model at a time" in line] == said
    assert len(said) == 1


def test_models_that_fit_together_are_not_grouped(caplog: pytest.LogCaptureFixture) -> None:
    loads, said = loads_and_lines(caplog, max_loaded=2, group_by_model=None)
    assert loads == 2
    assert said == []


def test_a_server_that_tells_some_load_time_for_loaded_models_is_not_taken_for_one_that_swaps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loads, said = loads_and_lines(caplog, max_loaded=2, group_by_model=None, warm_time_s=0.3)
    assert loads == 2
    assert said == []


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
