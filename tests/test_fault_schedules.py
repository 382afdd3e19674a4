"""Any mix of faults, latencies, servers, retries and limits: what holds whatever happens."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

from query_mutator.models.breaker import Breaker
from query_mutator.models.cache import ResponseCache
from query_mutator.models.calls import Call, Failure, Outcome
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.settings import ModelSettings, Pauses
from query_mutator.servers.simulated import Fault, SimulatedServer
from query_mutator.servers.simulated.faults import KINDS

MODEL = "llama3.2:3b"
TIMEOUT_S = 0.3
PATIENCE_S = 30.0
KINDS_OF_FAULT = sorted(KINDS - {"huge"})
"""A huge answer takes longer to send than the deadline of these calls."""


@dataclass(frozen=True)
class Rule:
    """Which calls to a server go wrong, and how."""

    kind: str
    probability: float

    def fault(self, seed: int) -> Fault:
        return Fault(
            self.kind,
            path="/api/chat",
            probability=self.probability,
            seed=seed,
            interval_s=0.05,
            retry_after_s=0.01,
        )


@dataclass(frozen=True)
class Schedule:
    """Servers with their faults, and what is asked of them."""

    rules: list[list[Rule]]
    """For each server."""
    slots: int
    latencies_s: list[float]
    retries: int
    max_workers: int | None
    questions: list[int]
    """Some are asked more than once."""
    sampled: bool
    seed: int


rules = st.builds(Rule, st.sampled_from(KINDS_OF_FAULT), st.sampled_from([0.1, 0.3, 1.0]))
schedules = st.builds(
    Schedule,
    rules=st.lists(st.lists(rules, max_size=3), min_size=1, max_size=3),
    slots=st.integers(1, 4),
    latencies_s=st.lists(st.sampled_from([0.0, 0.002, 0.01]), min_size=1, max_size=3),
    retries=st.integers(0, 2),
    max_workers=st.sampled_from([1, 2, 5, None]),
    questions=st.lists(st.integers(0, 15), min_size=1, max_size=24),
    sampled=st.booleans(),
    seed=st.integers(0, 9),
)


class Errors(logging.Handler):
    """Keeps what is logged as an error: a call that ends twice, or a bug."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@contextlib.contextmanager
def errors_of_the_client() -> Iterator[list[str]]:
    handler, log = Errors(), logging.getLogger("query_mutator.models")
    log.addHandler(handler)
    try:
        yield handler.seen
    finally:
        log.removeHandler(handler)


@contextlib.contextmanager
def running(schedule: Schedule) -> Iterator[tuple[list[SimulatedServer], ModelClient]]:
    """The servers of a schedule, warm and without faults so far, and a client of them."""
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(
                SimulatedServer(
                    slots=schedule.slots,
                    recorded_latencies_s=schedule.latencies_s,
                    answer=lambda model, system, prompt: f"echo {prompt}",
                    dialects=("ollama",),
                )
            )
            for _ in schedule.rules
        ]
        settings = ModelSettings(
            [server.url for server in servers],
            target_model=MODEL,
            retries=schedule.retries,
            load_timeout_s=TIMEOUT_S,
            pauses=Pauses(backoff_first_s=0.01),
        )
        connection = connect(settings)
        stack.callback(connection.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        client = ModelClient(
            connection.backends, settings, cache=ResponseCache(Path(directory) / "cache.sqlite")
        )
        stack.callback(client.close)
        for backend in connection.backends:
            backend.came_back(MODEL)
            backend.http.timeout_s = TIMEOUT_S
        for number, (server, rules) in enumerate(zip(servers, schedule.rules, strict=True)):
            server.set_faults(*(rule.fault(schedule.seed + number) for rule in rules))
            server.reset_stats()
        yield servers, client


def calls_of(schedule: Schedule) -> list[Call]:
    return [
        Call(
            "answer",
            MODEL,
            ({"role": "user", "content": f"question {number}"},),
            max_tokens=64,
            temperature=0.5 if schedule.sampled and number % 2 else 0.0,
        )
        for number in schedule.questions
    ]


def words(call: Call) -> str:
    return call.messages[0]["content"]


def make_all(client: ModelClient, calls: list[Call], max_workers: int | None) -> list[Outcome]:
    """The outcomes of calls that are all submitted at once; each must end exactly once."""
    ended: Counter[int] = Counter()
    lock = threading.Lock()

    def note(number: int) -> None:
        with lock:
            ended[number] += 1

    futures: list[Future[Outcome]] = []
    for number, call in enumerate(calls):
        future = client.submit(call, max_workers=max_workers)
        future.add_done_callback(lambda _, number=number: note(number))  # type: ignore[misc]
        futures.append(future)
    outcomes = [future.result(PATIENCE_S) for future in futures]
    assert ended == dict.fromkeys(range(len(calls)), 1)
    return outcomes


@settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(schedules)
@example(
    Schedule([[Rule(kind, 0.1) for kind in KINDS_OF_FAULT]], 2, [0.0], 0, 5, [*range(16)], True, 1)
)
@example(Schedule([[Rule("reset", 1.0)], []], 1, [0.002], 1, 2, [*range(12), *range(12)], False, 0))
def test_whatever_goes_wrong_nothing_is_lost_doubled_mixed_up_or_kept(schedule: Schedule) -> None:
    calls, began = calls_of(schedule), time.monotonic()
    with errors_of_the_client() as errors, running(schedule) as (servers, client):
        outcomes = make_all(client, calls, schedule.max_workers)

        for call, outcome in zip(calls, outcomes, strict=True):
            assert outcome.failed == (outcome.text == "")
            if not outcome.failed:
                assert outcome.text.endswith(f"echo {words(call)}"), "order is kept"
        if schedule.max_workers is not None:
            for server in servers:
                assert server.stats.max_in_flight <= schedule.max_workers

        counts = client.counts()
        # A call that shares the failure of an equal one was not made, and is no cache hit.
        failed = [words(call) for call, one in zip(calls, outcomes, strict=True) if one.failed]
        shared = len(calls) - counts.model_calls - counts.cache_hits
        assert 0 <= shared <= len(failed) - len(set(failed))
        assert counts.failed_calls == counts.failures_by_kind.total() <= counts.model_calls
        assert counts.attempts >= counts.model_calls
        event(f"{counts.failed_calls > 0=}")

        answered = {
            words(call)
            for call, outcome in zip(calls, outcomes, strict=True)
            if call.temperature == 0 and not outcome.failed
        }
        assert client.cache is not None
        assert client.cache.stats()["replies"] == len(answered), "what failed is in no file"

        for server in servers:
            server.set_faults()
        for backend in client.backends:
            backend.came_back(MODEL)
            backend.http.timeout_s = PATIENCE_S
        again = make_all(client, calls, schedule.max_workers)
        assert not any(outcome.failed for outcome in again), "what failed is not remembered"
        anew = {words(call) for call in calls if call.temperature == 0} - answered
        sampled = sum(call.temperature > 0 for call in calls)
        assert client.counts().model_calls == counts.model_calls + len(anew) + sampled
        # The place of a call that timed out is held for a while, then it is free.
        while client.counts().in_flight:
            assert time.monotonic() < began + PATIENCE_S, "a place is lost"
            threading.Event().wait(0.005)
    assert errors == []


def test_a_late_answer_of_a_server_that_is_down_begins_its_silence_anew() -> None:
    breaker = Breaker()
    breaker.open(Failure("server_error", "it broke"))
    began = breaker.silent_since
    breaker.answered()  # a call that was under way when the breaker opened
    assert not breaker.up
    assert began is not None
    assert breaker.silent_since is not None, "or it would count as silent since the clock began"
    assert breaker.silent_since >= began
    breaker.close()
    breaker.answered()
    assert breaker.silent_since is None
