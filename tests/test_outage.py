"""A server that goes away is waited for: nothing is lost, no step is wasted, no load multiplied."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.models.breaker import Breaker
from query_mutator.models.calls import Call, Failure
from query_mutator.models.client import CallCounts, ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.flows import FlowRunner
from query_mutator.models.outages import Outage
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.simulated import Fault, SimulatedServer, answer_from_questions
from query_mutator.training.counts import RunCounts
from query_mutator.training.progress import Progress
from tests.conftest import SIMULATED_MODELS, same_weights
from tests.test_training import scalars, train, transitions
from train_query_mutator import main

ENOUGH_S = 60.0
"""Within this a test fails in place of hanging; nothing is measured by it."""
REWRITES = ["--only-operators", "rephrase,shorten,clean_up"]
"""Operators that all ask the mutator."""
ANSWERS = answer_from_questions(DEFAULT_FILE)


@contextmanager
def client_of(
    *servers: SimulatedServer,
    retries: int = 2,
    timeout_s: float = 10.0,
    max_outage_s: float = ENOUGH_S,
    warm: bool = True,
) -> Iterator[ModelClient]:
    settings = ModelSettings(
        [server.url for server in servers],
        timeout_s=ENOUGH_S,
        retries=retries,
        max_outage_s=max_outage_s,
        **SIMULATED_MODELS,
    )
    connection = connect(settings)
    client = ModelClient(connection.backends, settings)
    if warm:
        assert not client.run([question("warm-up")])[0].failed
    for backend in client.backends:
        backend.http.timeout_s = timeout_s
    for server in servers:
        server.reset_stats()
    yield client
    client.close()
    connection.close()


def question(text: str | int) -> Call:
    return Call("answer", "llama3.2:3b", ({"role": "user", "content": f"{text}?"},), 16)


def questions(count: int) -> list[Call]:
    return [question(number) for number in range(count)]


def wait_until(condition: Callable[[], object]) -> None:
    """Waits for what other threads bring about."""
    never = threading.Event()
    for _ in range(int(ENOUGH_S / 0.01)):
        if condition():
            return
        never.wait(0.01)
    raise AssertionError("it did not come about")


def summary(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "summary.json").read_text())
    return found


@contextmanager
def beside(action: Callable[[], None]) -> Iterator[None]:
    """Does something on another thread meanwhile; what it raises is raised."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()
    assert not errors, errors


class Lines(logging.Handler):
    """What is said about outages; a command takes away the handlers of the root."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def said() -> Iterator[list[str]]:
    handler, logger = Lines(), logging.getLogger("query_mutator.models.outages")
    logger.addHandler(handler)
    yield handler.lines
    logger.removeHandler(handler)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    with SimulatedServer(answer=ANSWERS) as server:
        assert train(server, run, *REWRITES) == 0
    return run


@pytest.mark.usefixtures("embeds_anew")
def test_a_run_waits_for_a_server_that_restarts_and_learns_the_same(
    whole: Path, tmp_path: Path, said: list[str]
) -> None:
    disturbed = tmp_path / "disturbed"
    with SimulatedServer(answer=ANSWERS, mean_latency_s=0.01) as server:

        def go_away_and_return() -> None:
            wait_until(lambda: server.stats.generation_calls >= 40)
            server.crash()
            try:
                wait_until(lambda: said)
            finally:
                server.restart()

        with beside(go_away_and_return):
            assert train(server, disturbed, *REWRITES) == 0
    assert summary(disturbed)["env_steps"] == 48
    assert summary(disturbed)["failed_calls"] == summary(disturbed)["masked_transitions"] == 0
    assert transitions(disturbed) == transitions(whole)
    assert same_weights(disturbed, whole)
    assert len(said) == 2
    assert "does not answer (connection refused), gives up after 10:00" in said[0]
    assert "answers again after" in said[1]


def test_a_run_whose_server_is_gone_for_good_is_saved_and_resumed(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with SimulatedServer(answer=ANSWERS, mean_latency_s=0.01) as server:

        def go_away() -> None:
            wait_until(lambda: server.stats.generation_calls >= 40)
            server.crash()

        with beside(go_away):
            assert train(server, run, *REWRITES, "--max-outage", "1") == 1
        shown = capsys.readouterr().err
        name = server.url.removeprefix("http://")
        assert f"stopped answering: {name} has not answered for 0:01 (connection refused)" in shown
        steps = summary(run)["env_steps"]
        assert f"The work is saved at step {steps}; go on with: python train_query_" in shown
        assert summary(run)["env_steps"] < 48  # type: ignore[operator]
        server.restart()
        assert main(["--resume", "--run-dir", str(run), "--max-outage", "5"]) == 0
    assert transitions(run) == transitions(whole)
    assert same_weights(run, whole)
    assert summary(run)["masked_transitions"] == 0


def test_calls_wait_without_a_thread_and_are_all_answered_once_the_server_is_back() -> None:
    with SimulatedServer(mean_latency_s=0.005) as server, client_of(server) as client:
        server.crash()
        futures = [client.submit(call, max_workers=4) for call in questions(50)]
        wait_until(lambda: client.outage())
        wait_until(lambda: client.counts().in_flight == 0)
        server.restart()
        outcomes = [future.result(ENOUGH_S) for future in futures]
        assert not any(outcome.failed for outcome in outcomes)
        assert server.stats.generation_calls == 50 + 1, "each once, and the probe"
        assert server.stats.max_in_flight <= 4
        assert client.outage() is None
        assert client.why_gone() == ""


def test_calls_end_as_an_outage_when_nobody_comes_back_and_later_ones_at_once() -> None:
    with SimulatedServer() as server, client_of(server, max_outage_s=0.3) as client:
        server.crash()
        futures = [client.submit(call, max_workers=4) for call in questions(10)]
        failures = [future.result(ENOUGH_S).failure for future in futures]
        assert {failure.kind if failure else "" for failure in failures} == {"outage"}
        assert "has not answered for 0:00 (connection refused)" in client.why_gone()
        late = client.submit(question("late")).result(ENOUGH_S).failure
        assert late is not None
        assert late.kind == "outage"
        assert client.counts().failures_by_kind == {"outage": 11}
        server.restart()
        wait_until(lambda: not client.why_gone())
        assert not client.run([question("again")])[0].failed


def test_a_server_with_a_green_health_page_whose_generation_hangs_is_left_alone() -> None:
    with SimulatedServer() as server, client_of(server, timeout_s=0.3) as client:
        server.set_faults(Fault("hang"))
        future = client.submit(question("stuck"))
        wait_until(lambda: client.outage())
        outage = client.outage()
        assert outage is not None
        assert "no answer within 0.3 s" in outage.reason
        assert client.backends[0].http.get("/api/version", timeout_s=30)["version"]
        wait_until(lambda: server.stats.faults["hang"] >= 3)  # the call, and more than one probe
        assert not future.done()
        server.set_faults()
        assert not future.result(ENOUGH_S).failed


def test_a_model_that_has_never_answered_is_not_waited_for() -> None:
    with SimulatedServer() as server, client_of(server, retries=0, warm=False) as client:
        server.crash()
        failure = client.submit(question("anyone")).result(ENOUGH_S).failure
        assert failure is not None
        assert failure.kind == "connection"
        assert "did not answer its first call" in client.why_gone()


def test_a_request_that_is_refused_is_an_answer_and_opens_nothing() -> None:
    with SimulatedServer() as server, client_of(server) as client:
        server.set_faults(Fault("bad_request", calls=range(1, 11)))
        outcomes = client.run(questions(12), max_workers=1)
        assert [outcome.failed for outcome in outcomes] == [True] * 10 + [False] * 2
        assert server.stats.generation_calls == 12


def test_a_call_that_fails_by_itself_ends_although_it_is_put_back() -> None:
    with SimulatedServer() as server, client_of(server, retries=0) as client:
        # A prompt that crashes the runner, each time that it comes, on a server that is well.
        server.set_faults(Fault("runner_crash", calls=[1, 3, 5, 7]))
        outcome = client.submit(question("poison"), max_workers=1).result(ENOUGH_S)
        assert outcome.failure is not None
        assert outcome.failure.kind == "server_error"
        assert outcome.attempts == 4
        assert not client.run([question("fine")])[0].failed


def test_a_server_that_loses_three_calls_in_ten_is_not_left_alone() -> None:
    with SimulatedServer(mean_latency_s=0.005) as server, client_of(server, retries=5) as client:
        kinds = ("rate_limited", "reset", "malformed")
        server.set_faults(
            *(Fault(k, probability=0.1, seed=n, retry_after_s=0.01) for n, k in enumerate(kinds))
        )
        outcomes = client.run(questions(200), max_workers=8)
        assert not any(outcome.failed for outcome in outcomes)
        assert sum(server.stats.faults.values()) > 40
        probes = [r for r in server.stats.last_requests if "Hello" in str(r.body)]
        assert not probes, "it was left alone"


@pytest.mark.parametrize(
    ("kind", "reason", "opens_at"),
    [
        ("connection", "connection refused", 1),
        ("connection", "connection reset", 8),
        ("server_error", "HTTP 500", 8),
        ("timeout", "no answer", 1),
    ],
)
def test_a_breaker_opens_by_what_a_failure_says(kind: str, reason: str, opens_at: int) -> None:
    breaker = Breaker()
    sent = 1e12  # later than all that was answered
    suspected = [
        breaker.is_suspect(
            Failure(kind, reason), sent=sent, first_sent=sent, last_attempt=False,
            in_flight=4, alone=True,
        )
        for _ in range(8)
    ]  # fmt: skip
    assert suspected.index(True) + 1 == opens_at


def test_an_answer_between_failures_and_calls_from_before_a_return_keep_a_breaker_shut() -> None:
    breaker = Breaker()
    failure = Failure("server_error", "HTTP 500")

    def suspect(sent: float) -> bool:
        return breaker.is_suspect(
            failure, sent=sent, first_sent=sent, last_attempt=True, in_flight=1, alone=True
        )

    for _ in range(20):
        breaker.answered()
        assert not suspect(sent=0.0), "somebody was answered after that one was sent"
    breaker.open(failure)
    breaker.close()
    assert not any(suspect(sent=0.0) for _ in range(20)), "it was sent before the return"
    assert breaker.silent_since is not None, "a probe alone does not end the silence"
    breaker.answered()
    assert breaker.silent_since is None


@pytest.mark.parametrize("max_workers", [1, 3])
def test_retries_of_calls_that_timed_out_do_not_multiply_the_load(max_workers: int) -> None:
    # Each is waited for 0.4 s, holds its slot for longer, and does so although nobody waits.
    slow = [0.0] + [0.6] * 4 + [0.0] * 100
    server = SimulatedServer(slots=8, recorded_latencies_s=slow, disconnect_frees_slot=False)
    with server, client_of(server, timeout_s=0.4, retries=1) as client:
        outcomes = client.run(questions(9), max_workers=max_workers)
        assert not any(outcome.failed for outcome in outcomes)
        assert sum(outcome.attempts for outcome in outcomes) > 9
        assert server.stats.max_in_flight == max_workers
        assert client.counts().max_in_flight == max_workers


def test_the_bar_says_that_the_run_is_paused_and_for_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    progress = Progress(100, 0, max_workers=4)
    for seconds in (41.6, 43.0):
        progress.waiting(Outage("127.0.0.1:11434", "connection refused", seconds, 600))
    progress.step(0.5, CallCounts(model_calls=3), [])
    progress.close()
    shown = capsys.readouterr().err
    paused = "127.0.0.1:11434 does not answer (connection refused), gives up after 10:00"
    assert f"paused 0:42: {paused}" in shown
    assert f"paused 0:43: {paused}" in shown
    assert shown.rstrip().endswith("0 failed")


def test_whoever_waits_for_flows_is_told_while_nothing_comes() -> None:
    seen: list[Outage] = []

    async def flow(call: Call) -> None:
        await call

    with SimulatedServer() as server, client_of(server) as client:

        def look() -> None:
            if outage := client.outage():
                seen.append(outage)
                if len(seen) == 2:
                    server.restart()

        client.on_wait = look
        server.crash()
        runner: FlowRunner[None] = FlowRunner(client, {})
        runner.run([flow(call) for call in questions(3)])
    assert len(seen) >= 2
    assert 0 < seen[0].waited_s < seen[1].waited_s


def test_a_rollout_that_mostly_failed_is_collected_again_and_logged_once(
    whole: Path, tmp_path: Path
) -> None:
    disturbed = tmp_path / "disturbed"
    with SimulatedServer(answer=ANSWERS) as server:
        server.set_faults(Fault("bad_request", model="qwen2.5:3b", calls=range(20, 26)))
        assert train(server, disturbed, *REWRITES, "--max-failed-share", "0.01") == 0
    found = summary(disturbed)
    again = found["rollouts_collected_again"]
    assert isinstance(again, int)
    assert again >= 1
    assert found["masked_transitions"] == 0
    assert found["failures_by_kind"] == {"bad_request": found["failed_calls"]}
    assert transitions(disturbed) == transitions(whole)
    assert same_weights(disturbed, whole)
    curves = scalars(disturbed)
    assert sum(value for _, value in curves["Failures/rollouts_collected_again"]) == again
    failed = dict(curves["Failures/failed_calls"])
    assert any(value > 0 for _, value in curves["Failures/calls_bad_request"])
    assert all(failed[step] == value for step, value in curves["Failures/calls_bad_request"])


def test_points_between_which_updates_lie_count_the_failures_of_all_even_when_resumed(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    flags = [*REWRITES, "--max-failed-share", "1", "--log-interval", "3", "--save-interval", "1"]
    with SimulatedServer(answer=ANSWERS) as server:
        server.set_faults(Fault("bad_request", model="qwen2.5:3b", calls=range(3, 6)))
        assert train(server, run, *flags) == 0
        whole = scalars(run)["Failures/masked_transitions"]
        masked = summary(run)["masked_transitions"]
        assert isinstance(masked, int)
        assert masked > 0
        assert whole == [(48, masked)]
        for path in sorted((run / "checkpoints").iterdir())[-2:]:
            path.unlink()  # as if killed after the first update, which is not drawn by itself
        server.set_faults()
        assert train(server, run, *flags, "--resume") == 0
    assert scalars(run)["Failures/masked_transitions"] == whole
    assert summary(run)["masked_transitions"] == masked


def test_a_run_of_which_no_rollout_is_usable_is_saved_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with SimulatedServer(answer=ANSWERS) as server:
        # Every other one: of those that failed and are asked again, one fails at least.
        server.set_faults(Fault("bad_request", model="qwen2.5:3b", calls=range(20, 10_000, 2)))
        flags = ["--max-outage", "0.5", "--max-failed-share", "0.01"]
        assert train(server, run, *REWRITES, *flags) == 1
    shown = capsys.readouterr().err
    assert "rollout 2 is collected again: " in shown
    assert "transitions of a rollout failed, again and again for" in shown
    assert "The work is saved" in shown
    assert summary(run)["env_steps"] == 16
    assert summary(run)["rollouts_collected_again"] >= 1  # type: ignore[operator]
    assert len(transitions(run).splitlines()) == 16


def test_failures_are_counted_by_kind_on_top_of_those_before_a_resume() -> None:
    before = RunCounts(failures_by_kind={"busy": 1, "timeout": 2})
    counts = RunCounts()
    counts.count_calls(
        CallCounts(failed_calls=4, failures_by_kind=Counter(busy=3, reset=1)), before
    )
    assert counts.failures_by_kind == {"busy": 4, "reset": 1, "timeout": 2}
    assert counts.calls["failed_calls"] == 4
