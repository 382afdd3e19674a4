"""The benchmark: every design makes the same calls, within its limit, and is measured right."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark_batching import main
from query_mutator.bench.measure import Arena, measure, summarised
from query_mutator.bench.peers import PEERS, measure_peer
from query_mutator.bench.report import recommendation
from query_mutator.bench.strategies import STRATEGIES, Workload
from query_mutator.models.connect import connect
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.simulated import SimulatedServer, start_simulated


def asked(server: SimulatedServer) -> Counter[str]:
    return Counter(
        json.dumps([[m["role"], m["content"]] for m in request.body["messages"]])
        for request in server.stats.last_requests
        if request.path == "/api/chat"
    )


def test_all_designs_make_the_same_calls_within_their_limit(
    models_for: Callable[..., Models],
) -> None:
    seen = []
    for name, strategy in STRATEGIES.items():
        with SimulatedServer(slots=4, mean_latency_s=0.005, sigma=0.5) as server:
            models = models_for(server)
            work = Workload(6, 3, 4, models.roles)
            result = measure(name, strategy, work, Arena([server.url], models.connection))
            seen.append(asked(server))
            assert result.calls == 36
            assert result.failed == 0
            assert result.max_in_flight == server.stats.max_in_flight
            assert server.stats.max_in_flight <= (1 if name == "sequential" else 4)
    assert all(calls == seen[0] for calls in seen)


def test_utilisation_is_the_time_that_slots_were_held() -> None:
    with start_simulated("--slots=4", "--mean-latency=0.02") as child:
        connection = connect(
            ModelSettings(child.url, mutator_model="qwen2.5:3b", target_model="llama3.2:3b")
        )
        arena = Arena([child.url], connection, [child], 4)
        arena.load_models()
        work = Workload(8, 4, 2, Roles("qwen2.5:3b", "llama3.2:3b"))
        result = measure("own pace", STRATEGIES["own pace"], work, arena)
        connection.close()
    assert result.slot_utilisation is not None
    assert result.slot_utilisation * result.seconds * 4 == pytest.approx(64 * 0.02, rel=0.01)
    assert result.slot_utilisation < 0.5, "two calls at once cannot keep four slots busy"


def test_the_command_compares_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUM_QUERIES", "16")
    flags = ["--num-processes", "8", "--mean-latency", "0.002", "--batch-size", "2", "4"]
    assert main([*flags, "--output", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in STRATEGIES)
    content = json.loads((tmp_path / "out" / "batching.json").read_text())
    assert len(content["results"]) == 9, "sequential once, the others for two batch sizes"
    assert all(result["calls"] == 32 for result in content["results"])
    assert (tmp_path / "out" / "batching.png").stat().st_size > 5_000


def test_a_users_server_gets_a_recommendation(
    server: SimulatedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--server", server.url, "--mutator-model", "qwen2.5:3b", "--target-model"]
    flags += ["llama3.2:3b", "--num-processes", "2", "--num-queries", "4", "--designs", "own pace"]
    assert main(flags) == 0
    assert "the only size measured" in capsys.readouterr().out


def test_the_smallest_size_that_is_nearly_the_fastest_is_recommended() -> None:
    rates = {1: 10.0, 2: 20.0, 4: 38.5, 8: 40.0, 16: 36.0}
    work = Workload(2, 1, None, Roles("a", "b"))
    results = [
        summarised("own pace", replace(work, batch_size=size), 100, seconds=100 / rate)
        for size, rate in rates.items()
    ]
    results.append(summarised("barrier per step", replace(work, batch_size=2), 100, seconds=1))
    results.append(summarised("own pace", work, 100, seconds=1))
    assert recommendation(results) == (
        "recommended: --batch-size 4; for Ollama set OLLAMA_NUM_PARALLEL=4"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--batch-size", "0"], "--batch-size must be at least 1"),
        (["--num-queries", "x"], "--num-queries"),
        (["--batch-size", "x"], "invalid batch size value: 'x'"),
        (["--after-calls", "-1"], "--after-calls must be below"),
        (["--after-calls", "100000"], "--after-calls must be below"),
        (["--output", "/proc/nowhere"], "/proc/nowhere"),
        (["--designs", "magic"], "no design 'magic'"),
        (["--server", "http://127.0.0.1:9"], "no model server answers"),
    ],
)
def test_bad_input_is_one_clear_line(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags) == 2
    assert message in capsys.readouterr().err


def test_what_came_after_the_first_calls_is_told_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--num-processes", "8", "--num-queries", "160", "--mean-latency", "0.01"]
    flags += ["--designs", "own pace", "--batch-size", "auto", "--slots", "2"]
    assert main([*flags, "--after-calls", "100"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("own pace")]
    assert len(rows) == 2
    assert rows[1].startswith("own pace, from call 100")
    at_once = int(rows[1].split()[-2])
    assert 2 <= at_once <= 8, "what the limit finds is tested in test_limits.py, without a clock"


@pytest.mark.slow
def test_a_training_run_and_the_cost_of_the_collector_are_measured(tmp_path: Path) -> None:
    flags = ["--num-processes", "4", "--num-queries", "32", "--mean-latency", "0.005", "--designs"]
    assert main([*flags, "--training", "2", "--overhead", "--output", str(tmp_path)]) == 0
    results = json.loads((tmp_path / "batching.json").read_text())["results"]
    assert [result["strategy"] for result in results] == [
        "training run",
        "bytes, 8 connections",
        "requests, 8 threads",
        "own pace, with policy",
        "cache look-ups",
    ]
    assert all(result["calls"] > 0 and result["failed"] == 0 for result in results)
    assert 0 < results[0]["slot_utilisation"] < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_makes_the_same_calls(name: str, models_for: Callable[..., Models]) -> None:
    with SimulatedServer(slots=4) as server:
        models = models_for(server)
        work = Workload(2, 2, 2, models.roles)
        arena = Arena([server.url], models.connection)
        measure("own pace", STRATEGIES["own pace"], work, arena)
        ours = asked(server)
        server.reset_stats()
        [result] = measure_peer(name, PEERS[name], work, arena)
        assert asked(server) == ours
        assert result.calls == 8


def test_a_peer_that_cannot_run_is_skipped_with_a_line(
    models_for: Callable[..., Models],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)  # as if it were not installed
    with SimulatedServer() as ollama, SimulatedServer(dialects=("openai",)) as other:
        for server in (ollama, other):
            models = models_for(server)
            work = Workload(2, 1, 2, models.roles)
            arena = Arena([server.url], models.connection)
            assert measure_peer("litellm", PEERS["litellm batches"], work, arena) == []
    said = capsys.readouterr().err.splitlines()
    assert "litellm is not installed" in said[0]
    assert "speaks to Ollama only" in said[1]
