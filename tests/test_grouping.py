"""Where only one model fits into a server's memory, calls are grouped by model."""

from __future__ import annotations

import logging

import pytest

from benchmarks.strategies import Workload, own_pace
from model_client.client import ModelClient
from model_client.connect import connect
from model_client.roles import Roles
from servers.simulated import SimulatedServer
from tests.conftest import SIMULATED_MODELS

LOAD_S = 0.25


def loads_and_lines(
    caplog: pytest.LogCaptureFixture, *, max_loaded: int, group_by_model: bool | None
) -> tuple[int, list[str]]:
    """How often models were loaded for the same calls, and what the user was told."""
    caplog.clear()
    with SimulatedServer(
        slots=4, mean_latency_s=0.02, max_loaded=max_loaded, load_time_s=LOAD_S
    ) as server:
        connection = connect(server.url, group_by_model=group_by_model, **SIMULATED_MODELS)
        client = ModelClient(connection.backends)
        work = Workload(12, 5, 4, Roles(**SIMULATED_MODELS))
        with caplog.at_level(logging.WARNING):
            outcomes = own_pace(client, work)
        client.close()
        assert not any(outcome.failed for outcome in outcomes)
        assert server.stats.generations_answered == 120
        return server.stats.model_loads, [record.getMessage() for record in caplog.records]


def test_models_that_take_turns_are_noticed_and_grouped(caplog: pytest.LogCaptureFixture) -> None:
    ungrouped, _ = loads_and_lines(caplog, max_loaded=1, group_by_model=False)
    found, said = loads_and_lines(caplog, max_loaded=1, group_by_model=None)
    told, _ = loads_and_lines(caplog, max_loaded=1, group_by_model=True)
    assert found < ungrouped / 1.5
    assert told < ungrouped / 1.5
    assert [line for line in said if "one model at a time" in line] == said
    assert len(said) == 1


def test_models_that_fit_together_are_not_grouped(caplog: pytest.LogCaptureFixture) -> None:
    loads, said = loads_and_lines(caplog, max_loaded=2, group_by_model=None)
    assert loads == 2
    assert said == []
