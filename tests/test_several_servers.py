"""Calls go where there is room; a server that fails is left alone, probed and taken back."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.models.calls import Call
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.flows import FlowRunner
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.simulated import (
    Fault,
    SimulatedChild,
    SimulatedServer,
    answer_from_questions,
    start_simulated,
)
from tests.conftest import SIMULATED_FLAGS, SIMULATED_MODELS
from tests.waiting import ENOUGH_S, wait_until
from train_query_mutator import main

AT_ONCE = 4


@contextmanager
def client_of(*servers: SimulatedServer, retries: int = 2) -> Iterator[ModelClient]:
    urls = [server.url for server in servers]
    settings = ModelSettings(urls, timeout_s=10, retries=retries, **SIMULATED_MODELS)
    connection = connect(settings)
    client = ModelClient(connection.backends, settings)
    for server in servers:
        server.reset_stats()
    yield client
    client.close()
    connection.close()


def questions(count: int, *, first: int = 0) -> list[Call]:
    return [
        Call("answer", "llama3.2:3b", ({"role": "user", "content": f"question {n}?"},), 16)
        for n in range(first, first + count)
    ]


def test_two_servers_share_the_calls_within_the_limit_of_each() -> None:
    with (
        SimulatedServer(mean_latency_s=0.1) as one,
        SimulatedServer(mean_latency_s=0.1) as other,
        client_of(one, other) as client,
    ):
        outcomes = client.run(questions(80), max_workers=AT_ONCE)
        assert not any(outcome.failed for outcome in outcomes)
        for server in (one, other):
            assert server.stats.max_in_flight == AT_ONCE
            assert server.stats.generation_calls >= 20
        assert [status.calls for status in client.servers()] == [
            one.stats.generation_calls,
            other.stats.generation_calls,
        ]


def test_flows_are_begun_as_there_are_servers_to_answer_them() -> None:
    begun: list[int] = []

    async def flow(number: int, call: Call) -> str:
        begun.append(number)
        return (await call).text

    flows = [flow(number, call) for number, call in enumerate(questions(60))]
    with SimulatedServer() as one, SimulatedServer() as other, client_of(one, other) as client:
        runner: FlowRunner[str] = FlowRunner(client, {}, max_workers=AT_ONCE)
        results = runner.each(flows)
        first = next(results)
        assert begun == list(range(2 * 2 * AT_ONCE))
        assert sorted(number for number, _ in [first, *results]) == list(range(60))
        assert len(begun) == 60


def test_a_slower_server_gets_fewer_calls() -> None:
    with (
        SimulatedServer(mean_latency_s=0.005) as fast,
        SimulatedServer(mean_latency_s=0.2) as slow,
        client_of(fast, slow) as client,
    ):
        client.run(questions(80), max_workers=AT_ONCE)
        assert fast.stats.generation_calls > 2 * slow.stats.generation_calls > 0


def test_a_server_that_dies_loses_no_call_and_is_used_again_when_it_is_back() -> None:
    with (
        SimulatedServer(mean_latency_s=0.02) as dying,
        SimulatedServer(mean_latency_s=0.02) as steady,
        client_of(dying, steady) as client,
    ):
        futures = [client.submit(call, max_workers=AT_ONCE) for call in questions(100)]
        futures[20].result(ENOUGH_S)
        dying.crash()
        outcomes = [future.result(ENOUGH_S) for future in futures]
        assert not any(outcome.failed for outcome in outcomes)
        asked_again = sum(outcome.attempts - 1 for outcome in outcomes)
        assert 1 <= asked_again <= 2 * AT_ONCE, "what was under way there, or just going out"
        arrived = dying.stats.generation_calls + steady.stats.generation_calls
        assert arrived <= 100 + AT_ONCE, "nothing but what was under way there is served twice"
        assert [status.up for status in client.servers()] == [False, True]

        dying.restart()
        before = dying.stats.generation_calls
        wait_until(lambda: client.servers()[0].up)
        client.run(questions(20, first=100), max_workers=AT_ONCE)
        assert dying.stats.generation_calls > before + 1, "more than the probe"


def test_a_server_that_answers_with_errors_is_left_alone_after_three() -> None:
    with SimulatedServer() as broken, SimulatedServer() as sound:
        broken.set_faults(Fault("runner_crash"))
        with client_of(broken, sound, retries=0) as client:
            for call in questions(20):
                assert not client.run([call], max_workers=1)[0].failed
            chats = [r for r in broken.stats.last_requests if _says(r.body, "question")]
            assert len(chats) == 3
            broken.set_faults()
            wait_until(lambda: client.servers()[0].up)


def test_a_bad_request_is_no_fault_of_the_server() -> None:
    with SimulatedServer() as one, SimulatedServer() as other:
        for server in (one, other):
            server.set_faults(Fault("bad_request"))
        with client_of(one, other) as client:
            assert all(outcome.failed for outcome in client.run(questions(10)))
            assert one.stats.generation_calls + other.stats.generation_calls == 10
            assert all(status.up for status in client.servers())


def test_a_call_for_a_model_that_only_the_dead_server_has_fails_and_does_not_wait() -> None:
    with (
        SimulatedServer() as both,
        SimulatedServer(models=("llama3.2:3b",)) as one_model,
        client_of(both, one_model, retries=0) as client,
    ):
        both.crash()
        assert not any(outcome.failed for outcome in client.run(questions(8), max_workers=2))
        assert not client.servers()[0].up
        call = replace(questions(1)[0], purpose="mutation", model="qwen2.5:3b")
        outcome = client.submit(call).result(ENOUGH_S)
        assert outcome.failure is not None
        assert outcome.failure.kind == "connection"


def test_every_server_may_fail_a_call_as_often_as_retries_allow() -> None:
    with SimulatedServer() as one, SimulatedServer() as other:
        for server in (one, other):
            server.set_faults(Fault("busy", times=2))
        with client_of(one, other, retries=2) as client:
            outcome = client.run(questions(1), max_workers=1)[0]
        assert not outcome.failed
        assert outcome.attempts <= 5


def test_a_server_without_the_models_is_refused() -> None:
    with (
        SimulatedServer() as one,
        SimulatedServer(models=("phi3:mini",)) as other,
        pytest.raises(UserError, match="has no model"),
    ):
        connect(ModelSettings([one.url, other.url], **SIMULATED_MODELS))


def test_calls_fail_when_every_server_is_gone() -> None:
    with (
        SimulatedServer() as one,
        SimulatedServer() as other,
        client_of(one, other, retries=1) as client,
    ):
        one.crash()
        other.crash()
        outcomes = client.run(questions(6), max_workers=2)
        assert {o.failure.kind if o.failure else "" for o in outcomes} == {"connection"}


def test_a_dead_server_is_told_once_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        SimulatedServer() as dying,
        SimulatedServer() as steady,
        client_of(dying, steady) as client,
    ):
        client.run(questions(10))
        dying.crash()
        with caplog.at_level(logging.WARNING):
            client.run(questions(20, first=10))
            dying.restart()
            wait_until(lambda: client.servers()[0].up)
        said = [record.getMessage() for record in caplog.records]
        assert sum("is left alone until it answers" in line for line in said) == 1
        wait_until(lambda: "answers again" in caplog.text)


def _says(body: object, text: str) -> bool:
    return text in str(body)


@pytest.mark.slow
def test_a_run_whose_server_is_killed_and_comes_back_ends_as_asked(tmp_path: Path) -> None:
    flags = ["--slots=4", f"--questions={DEFAULT_FILE}"]
    latencies = tmp_path / "latencies"
    latencies.write_text("0.02 " * 40 + "600 " * 100)  # when it is killed it is at work
    answers = answer_from_questions(DEFAULT_FILE)
    asked, is_back, is_over = itertools.count(), threading.Event(), threading.Event()
    seen: dict[str, int] = {}

    def answer(model: str, system: str, prompt: str) -> str:
        if next(asked) >= 100:  # the run must not end before the other is back
            is_back.wait(ENOUGH_S)
        return answers(model, system, prompt)

    def kill_and_restart(dying: SimulatedChild) -> None:
        wait_until(lambda: dying.stats()["generation_calls"] > 40)
        dying.process.kill()
        dying.process.wait()
        port = dying.url.rsplit(":", 1)[1]
        with start_simulated(*flags, "--mean-latency=0.02", f"--port={port}") as again:
            wait_until(lambda: again.stats()["generation_calls"])
            is_back.set()
            is_over.wait()
            seen["after its return"] = again.stats()["generation_calls"]

    with (
        SimulatedServer(slots=4, mean_latency_s=0.02, sigma=0.5, answer=answer) as steady,
        start_simulated(*flags, f"--latencies={latencies}") as dying,
    ):
        helper = threading.Thread(target=kill_and_restart, args=[dying])
        helper.start()
        steps = ["--num-processes", "16", "--num-steps", "8", "--num-env-steps", "256"]
        steps += ["--no-eval", "--eval-interval", "0", "--num-questions", "100"]
        server = ["--server", steady.url, "--server", dying.url, "--batch-size", "4", "--no-cache"]
        run = tmp_path / "run"
        code = main([*SIMULATED_FLAGS, *server, *steps, "--no-report", "--run-dir", str(run)])
        is_over.set()
        helper.join()
    assert code == 0
    summary = json.loads((run / "summary.json").read_text())
    assert summary["env_steps"] == 256
    assert summary["masked_transitions"] == summary["failed_calls"] == 0
    assert 1 <= summary["attempts"] - summary["model_calls"] <= 2 * AT_ONCE
    assert seen["after its return"] > 10
