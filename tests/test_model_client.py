"""The client: retries, deadlines, order, sharing, and failures that are values."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from query_mutator.models.calls import Call
from query_mutator.models.session import Models
from query_mutator.models.settings import Pauses
from query_mutator.servers.simulated import Fault, SimulatedServer
from tests.waiting import ENOUGH_S, wait_until

MakeModels = Callable[..., Models]


def ask(text: str, *, temperature: float = 0.0) -> Call:
    message = {"role": "user", "content": text}
    return Call("answer", "llama3.2:3b", (message,), max_tokens=32, temperature=temperature)


@pytest.mark.parametrize("dialects", [("ollama",), ("openai",)])
def test_both_dialects_give_the_same_answer(
    dialects: tuple[str, ...], models_for: MakeModels
) -> None:
    with SimulatedServer(dialects=dialects) as server:
        models = models_for(server)
        outcome = models.client.submit(ask("Why is the sky blue?")).result()
        assert models.connection.backends[0].dialect.name == dialects[0]
        assert not outcome.failed
        assert outcome.text
        assert outcome.reply.completion_tokens > 0


def test_outcomes_keep_the_order_of_the_calls(models_for: MakeModels) -> None:
    with SimulatedServer(slots=8, mean_latency_s=0.01, sigma=1.0) as server:
        models = models_for(server)
        texts = [f"What is {n} plus {n}?" for n in range(40)]
        alone = [models.client.run([ask(text, temperature=0.1)])[0].text for text in texts]
        together = models.client.run([ask(text, temperature=0.1) for text in texts])
        assert [outcome.text for outcome in together] == alone
        assert len(set(alone)) > 30


@pytest.mark.parametrize("max_workers", [1, 3, 8])
def test_no_more_calls_are_under_way_than_workers(max_workers: int, models_for: MakeModels) -> None:
    # A model's first call goes alone; the next ones take long enough to be all under way.
    latencies = [0.0, *[0.5] * max_workers, *[0.0] * 5 * max_workers]
    with SimulatedServer(slots=16, recorded_latencies_s=latencies) as server:
        models = models_for(server)
        calls = [ask(f"question {n}?") for n in range(len(latencies))]
        models.client.run(calls, max_workers=max_workers)
        assert server.stats.max_in_flight == max_workers
        assert models.client.counts().max_in_flight == max_workers


def test_each_thread_keeps_its_connection(models_for: MakeModels) -> None:
    with SimulatedServer(mean_latency_s=0.002) as server:
        models = models_for(server)
        models.client.run([ask(f"question {n}?") for n in range(100)], max_workers=4)
        assert server.stats.connections_opened <= 4


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("busy", "busy"),
        ("load_failure", "server_error"),
        ("runner_crash", "server_error"),
        ("rate_limited", "busy"),
        ("reset", "connection"),
        ("truncated", "connection"),
        ("malformed", "malformed"),
        ("empty", "malformed"),
        ("html", "server_error"),
    ],
)
def test_a_passing_fault_is_retried_and_a_lasting_one_is_a_failure(
    kind: str, failure: str, models_for: MakeModels
) -> None:
    with SimulatedServer() as server:
        models = models_for(server, retries=2)
        server.set_faults(Fault(kind, times=1, retry_after_s=0.01))
        assert not models.client.run([ask("once?")])[0].failed
        assert server.stats.generation_calls == 2
        server.set_faults(Fault(kind, retry_after_s=0.01))
        outcome = models.client.run([ask("for ever?")])[0]
        assert outcome.failure is not None
        assert outcome.failure.kind == failure
        assert outcome.attempts == 3
        assert outcome.text == ""


@pytest.mark.parametrize("kind", ["not_found", "bad_request"])
def test_400_and_404_are_never_retried(kind: str, models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server, retries=5)
        server.set_faults(Fault(kind))
        outcome = models.client.run([ask("well?")])[0]
        assert outcome.failed
        assert server.stats.generation_calls == 1


@pytest.mark.parametrize("kind", ["hang", "drip"])
def test_a_server_that_never_finishes_hits_the_deadline(kind: str, models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server, timeout_s=0.5)
        server.set_faults(Fault(kind, interval_s=0.1))
        failure = models.client.run([ask("anyone?")])[0].failure
        assert failure is not None
        assert failure.kind == "timeout"


def test_an_answer_that_the_server_gave_up_on_is_a_failure(models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server)
        server.set_faults(Fault("unfinished"))
        failure = models.client.run([ask("repeat?")])[0].failure
        assert failure is not None
        assert failure.kind == "truncated"


def test_half_a_surrogate_pair_in_an_answer_is_replaced(models_for: MakeModels) -> None:
    with SimulatedServer(answer=lambda *_: "cut emoji \ud83d") as server:
        outcome = models_for(server).client.run([ask("what?")])[0]
    assert outcome.text == "cut emoji \ufffd"


def test_calls_that_never_started_end_when_the_client_closes(models_for: MakeModels) -> None:
    with SimulatedServer(mean_latency_s=0.2) as server:
        models = models_for(server)
        futures = [models.client.submit(ask(f"{n}?"), max_workers=1) for n in range(5)]
        models.client.close()
        late = models.client.submit(ask("late?"), max_workers=1)
        outcomes = [future.result(ENOUGH_S) for future in [*futures, late]]
        assert [outcome.failed for outcome in outcomes[1:]] == [True] * 5


def test_a_huge_answer_is_refused_while_it_is_read(models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server)
        server.set_faults(Fault("huge"))
        failure = models.client.run([ask("much?")])[0].failure
        assert failure is not None
        assert "larger than" in failure.reason


def test_one_failure_does_not_disturb_the_others(models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server)
        server.set_faults(Fault("runner_crash", calls=(3,)))
        outcomes = models.client.run([ask(f"question {n}?") for n in range(8)], max_workers=1)
        assert [outcome.failed for outcome in outcomes] == [n == 2 for n in range(8)]


def test_equal_calls_are_made_once_also_while_on_their_way(models_for: MakeModels) -> None:
    with SimulatedServer(mean_latency_s=0.05) as server:
        models = models_for(server)
        outcomes = models.client.run([ask("the same?")] * 10)
        again = models.client.run([ask("the same?")])[0]
        assert server.stats.generation_calls == 1
        assert len({outcome.text for outcome in outcomes}) == 1
        assert again.cached
        assert models.client.counts().cache_hits == 10


def test_calls_at_a_temperature_are_not_shared(models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server)
        models.client.run([ask("warm?", temperature=0.7)] * 3)
        assert server.stats.generation_calls == 3


def test_a_failure_is_not_remembered(models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server)
        server.set_faults(Fault("bad_request", times=1))
        assert models.client.run([ask("again?")])[0].failed
        assert not models.client.run([ask("again?")])[0].failed
        counts = models.client.counts()
        assert (counts.model_calls, counts.failed_calls, counts.cache_hits) == (2, 1, 0)


def test_failures_are_logged_once_for_each_kind(
    models_for: MakeModels, caplog: pytest.LogCaptureFixture
) -> None:
    with SimulatedServer() as server, caplog.at_level(logging.WARNING):
        models = models_for(server)
        server.set_faults(Fault("bad_request"))
        models.client.run([ask(f"question {n}?") for n in range(5)])
        server.set_faults(Fault("runner_crash"))
        models.client.run([ask(f"question {n}!") for n in range(5)])
    assert len(caplog.records) == 2


def test_a_slow_retry_ends_when_the_client_closes(models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server, retries=5)
        server.set_faults(Fault("rate_limited", retry_after_s=50))
        future = models.client.submit(ask("patience?"))
        wait_until(lambda: server.stats.generation_calls)
        models.client.close()
        assert future.result(ENOUGH_S).failed


def test_back_off_doubles_with_jitter_up_to_a_limit_and_obeys_the_server() -> None:
    pauses = Pauses()
    for attempt, full in [(1, 0.5), (2, 1.0), (3, 2.0), (10, 8.0)]:
        waits = [pauses.backoff_s(attempt, None) for _ in range(200)]
        assert 0.75 * full <= min(waits) < max(waits) <= full
    assert pauses.backoff_s(1, 3.0) == 3.0
    assert pauses.backoff_s(1, 1e9) == 60.0


def test_every_request_carries_the_pinned_options(models_for: MakeModels) -> None:
    with SimulatedServer(dialects=("ollama",)) as server:
        models = models_for(
            server, num_ctx=1024, max_tokens_answer=7, seed=5, temperature_answer=0.5
        )
        models.client.run([models.roles.answer_call("How?")])
        body = server.stats.last_requests[-1].body
        assert body["options"] == {"num_predict": 7, "temperature": 0.5, "seed": 5, "num_ctx": 1024}
        assert body["stream"] is False


def test_a_call_made_ahead_waits_for_all_others_unless_somebody_asks_for_it(
    models_for: MakeModels,
) -> None:
    all_have_come = threading.Event()

    def answer(model: str, system: str, prompt: str) -> str:
        if prompt == "first?":
            all_have_come.wait(ENOUGH_S)
        return "yes"

    with SimulatedServer(slots=1, answer=answer) as server:
        models = models_for(server, timeout_s=ENOUGH_S)
        client, ask = models.client, models.roles.answer_call
        client.run([ask("warm up?")])
        first = client.submit(ask("first?"), max_workers=1)
        for text in ("later?", "wanted?", "never?"):
            client.fetch_ahead(ask(text), max_workers=1)
        last = client.submit(ask("last?"), max_workers=1, priority=(9,))
        wanted = client.submit(ask("wanted?"), max_workers=1, priority=(1,))
        all_have_come.set()
        assert not any(future.result().failed for future in (first, wanted, last))
        client.wait_for_ahead()
        asked = [request.body["messages"][0]["content"] for request in server.stats.last_requests]
        assert asked == ["warm up?", "first?", "wanted?", "last?", "later?", "never?"]


def test_an_answer_fetched_ahead_is_made_once_and_is_no_cache_hit_at_first(
    models_for: MakeModels,
) -> None:
    with SimulatedServer() as server:
        client, ask = models_for(server).client, models_for(server).roles.answer_call
        client.fetch_ahead(ask("known?"))
        client.fetch_ahead(ask("known?"))
        client.wait_for_ahead()
        assert [client.run([ask("known?")])[0].cached for _ in range(2)] == [False, True]
        assert server.stats.generation_calls == 1
        assert (client.counts().model_calls, client.counts().cache_hits) == (1, 1)


def test_a_sampled_call_is_not_made_ahead(models_for: MakeModels) -> None:
    with SimulatedServer() as server:
        models = models_for(server, temperature_answer=0.8)
        models.client.fetch_ahead(models.roles.answer_call("which?"))
        models.client.wait_for_ahead()
        assert server.stats.generation_calls == 0


def test_a_future_that_somebody_gives_up_disturbs_nobody_else(models_for: MakeModels) -> None:
    with SimulatedServer(slots=1, mean_latency_s=0.02) as server:
        models = models_for(server)
        futures = [
            models.client.submit(models.roles.answer_call(text), max_workers=1)
            for text in ("same?", "same?", "other?")
        ]
        assert not futures[0].cancel(), "others may wait for the same answer"
        assert not any(future.result(ENOUGH_S).failed for future in futures)
        assert models.client.counts().in_flight == 0


def test_embeddings_do_not_wait_for_the_calls_that_are_under_way(models_for: MakeModels) -> None:
    with SimulatedServer(slots=16, mean_latency_s=30) as server:
        models = models_for(server)
        backend = models.client.backends[0]
        backend.also_serves("embedding", "llama3.2:3b", "")
        for model in ("llama3.2:3b", "qwen2.5:3b"):
            backend.came_back(model)
        for number in range(16):
            models.client.submit(models.roles.answer_call(f"{number}?"), max_workers=8)
        assert len(models.client.embed("llama3.2:3b", ["text"], num_ctx=2048)) == 1
