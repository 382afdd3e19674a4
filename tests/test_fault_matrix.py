"""Every fault, in both dialects, at every place: what the user sees, and that none is kept.

The simulated server's table of faults (`servers/simulated/faults.py`) is the list; a kind that is
added there and has no row here fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from query_mutator.base.errors import ServerUnavailableError
from query_mutator.data import Question
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.models.cache import ResponseCache
from query_mutator.models.calls import Call
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.encoders import Encoder
from query_mutator.models.http import MAX_BODY_BYTES
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import Weights, load_objective
from query_mutator.operators import Operator
from query_mutator.servers.simulated import Fault, SimulatedServer
from query_mutator.servers.simulated.faults import KINDS
from tests.conftest import SIMULATED_FLAGS, SIMULATED_MODELS
from train_query_mutator import main

MUTATOR, TARGET = SIMULATED_MODELS["mutator_model"], SIMULATED_MODELS["target_model"]
DIALECTS = ("ollama", "openai")
PLACES = ("mutation", "answer")
TIMEOUT_S = 0.2
PATIENCE_S = 20.0
"""The deadline of what is meant to be answered."""
TIMED = {"hang", "stall", "drip", "header_drip"}
"""Faults that only a deadline ends."""
STOPPED = "model runner has unexpectedly stopped"


@dataclass(frozen=True)
class Seen:
    """What a user is told of a fault."""

    kind: str
    reason: str
    """Words of the reason, the same in both dialects."""
    retried: bool


FAULTS: dict[str, Seen] = {
    "not_found": Seen("not_found", "HTTP 404: model '{model}' not found", False),
    "bad_request": Seen("bad_request", "HTTP 400: invalid character", False),
    "closed_request": Seen("bad_request", "HTTP 499: client closed request", False),
    "redirect": Seen("bad_request", "HTTP 307", False),
    "busy": Seen("busy", "HTTP 503: server busy, please try again", True),
    "rate_limited": Seen("busy", "HTTP 429: too many requests", True),
    "load_failure": Seen("server_error", "HTTP 500: model requires more system memory", True),
    "process_terminated": Seen("server_error", "process has terminated: signal: killed", True),
    "runner_crash": Seen("server_error", f"HTTP 500: {STOPPED}", True),
    "stream_error": Seen("server_error", f"HTTP 500: {STOPPED}", True),
    "late_error": Seen("server_error", STOPPED, True),
    "html": Seen("server_error", "HTTP 502", True),
    "reset": Seen("connection", "failed: connection reset", True),
    "truncated": Seen("connection", "failed: the answer broke off", True),
    "hang": Seen("timeout", "within {timeout_s} s", True),
    "stall": Seen("timeout", "within {timeout_s} s", True),
    "drip": Seen("timeout", "within {timeout_s} s", True),
    "header_drip": Seen("timeout", "within {timeout_s} s", True),
    "malformed": Seen("malformed", "the answer is not a JSON object", True),
    "empty": Seen("malformed", "the answer is not a JSON object", True),
    "deep": Seen("malformed", "the answer is not a JSON object", True),
    "bare": Seen("malformed", "the answer has no", True),
    "wrong_types": Seen("malformed", "the answer has no", True),
    "huge": Seen("malformed", "answer larger than", False),
    "unfinished": Seen("truncated", "the server gave up in mid-answer", False),
}
NO_FAILURE = {"hostile_text"}
"""Faults of an answer that stays an answer."""

matrix = pytest.mark.parametrize("dialect", DIALECTS)
every_fault = pytest.mark.parametrize("kind", sorted(FAULTS))


def fault(kind: str, **more: Any) -> Fault:
    """A fault that needs little time."""
    options = {"interval_s": 0.05, "retry_after_s": 0.01, "size_bytes": MAX_BODY_BYTES, **more}
    return Fault(kind, **options)


def ask(text: str, model: str = TARGET) -> Call:
    return Call("answer", model, ({"role": "user", "content": text},), max_tokens=32)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, SimulatedServer]]:
    """One server for each dialect, for all tests of this file."""
    with (
        SimulatedServer(dialects=("ollama",)) as ollama,
        SimulatedServer(dialects=("openai",)) as openai,
    ):
        yield {"ollama": ollama, "openai": openai}


@pytest.fixture
def open_on(
    servers: dict[str, SimulatedServer], encoder: Encoder, tmp_path: Path
) -> Iterator[Callable[..., Models]]:
    """Models on the server of a dialect, without faults so far, that keep answers in a file."""
    opened: list[Models] = []

    def open_models(dialect: str) -> Models:
        server = servers[dialect]
        server.set_faults()
        server.reset_stats()
        settings = ModelSettings(
            server.url,
            timeout_s=PATIENCE_S,
            load_timeout_s=PATIENCE_S,
            retries=0,
            **SIMULATED_MODELS,
        )
        connection = connect(settings)
        cache = ResponseCache(tmp_path / f"{dialect}.sqlite")
        client = ModelClient(connection.backends, settings, cache=cache)
        opened.append(Models(client, Roles(**SIMULATED_MODELS), encoder, connection))
        return opened[-1]

    yield open_models
    for models in opened:
        models.close()
    for server in servers.values():
        server.set_faults()


@pytest.fixture
def env_on(
    open_on: Callable[..., Models], train_questions: list[Question], operators: list[Operator]
) -> Callable[..., QueryMutationEnv]:
    """An environment of one rewrite on the server of a dialect."""
    objective = load_objective("helpful", Weights())

    def make(dialect: str) -> QueryMutationEnv:
        return QueryMutationEnv(train_questions, operators, objective, open_on(dialect))

    return make


def kept(models: Models) -> int:
    """Answers in the cache file."""
    assert models.client.cache is not None
    replies: int = models.client.cache.stats()["replies"]
    return replies


def action_of(env: QueryMutationEnv, operator: str) -> int:
    return 1 + [one.name for one in env.operators].index(operator)


def test_every_kind_of_fault_is_in_the_matrix() -> None:
    assert set(FAULTS) | NO_FAILURE == KINDS


@matrix
@every_fault
def test_a_call_that_fails_says_why_and_is_neither_kept_nor_remembered(
    kind: str, dialect: str, servers: dict[str, SimulatedServer], open_on: Callable[..., Models]
) -> None:
    models = open_on(dialect)
    client, http = models.client, models.client.backends[0].http
    client.run([ask("warm?")])
    servers[dialect].set_faults(fault(kind))
    http.timeout_s = TIMEOUT_S if kind in TIMED else PATIENCE_S

    outcome = client.run([ask("well?")])[0]

    seen = FAULTS[kind]
    assert outcome.failure is not None
    assert outcome.failure.kind == seen.kind
    assert seen.reason.format(model=TARGET, timeout_s=TIMEOUT_S) in outcome.failure.reason
    assert "\n" not in outcome.failure.reason
    assert client.counts().failures_by_kind == {seen.kind: 1}
    assert kept(models) == 1, "a failure must not be kept"

    servers[dialect].set_faults()
    http.timeout_s = PATIENCE_S
    calls_before = servers[dialect].stats.generation_calls
    assert not client.run([ask("well?")])[0].failed, "a failure must not be remembered"
    assert servers[dialect].stats.generation_calls > calls_before


@every_fault
@pytest.mark.parametrize("place", PLACES)
def test_a_step_whose_call_fails_is_marked_and_says_why(
    kind: str,
    place: str,
    servers: dict[str, SimulatedServer],
    env_on: Callable[..., QueryMutationEnv],
) -> None:
    # In turn: that both dialects tell the same of each fault is tested above.
    dialect = DIALECTS[(sorted(FAULTS).index(kind) + PLACES.index(place)) % 2]
    env = env_on(dialect)
    model, operator = (MUTATOR, "rephrase") if place == "mutation" else (TARGET, "qa")
    env.models.client.run([ask("warm?", MUTATOR)])
    _, opening = env.reset()
    kept_before = kept(env.models)
    servers[dialect].set_faults(fault(kind, model=model))
    http = env.models.client.backends[0].http
    http.timeout_s = TIMEOUT_S if kind in TIMED else PATIENCE_S

    _, reward, terminated, truncated, info = env.step(action_of(env, operator))

    seen = FAULTS[kind]
    assert info["failed"]
    assert info["failure"].startswith(f"{place}: ")
    assert seen.reason.format(model=model, timeout_s=TIMEOUT_S) in info["failure"]
    assert "\n" not in info["failure"]
    assert (reward, terminated, truncated, info["score"]) == (0.0, False, True, None)
    if place == "mutation":
        assert info["rewritten_query"] == opening["query"], "a failed rewrite leaves the question"
    counts = env.models.client.counts()
    assert counts.failures_by_kind == {seen.kind: 1}
    assert counts.failed_calls == 1
    assert kept(env.models) == kept_before, "a failure must not be kept"

    servers[dialect].set_faults()
    http.timeout_s = PATIENCE_S
    calls_before = servers[dialect].stats.calls_by_model[model]
    *_, info = env.step(action_of(env, operator))
    assert not info["failed"], "a failure must not be remembered"
    assert servers[dialect].stats.calls_by_model[model] > calls_before


@matrix
@every_fault
def test_a_model_that_fails_from_its_first_call_on_ends_the_start_with_its_reason(
    kind: str,
    dialect: str,
    servers: dict[str, SimulatedServer],
    env_on: Callable[..., QueryMutationEnv],
) -> None:
    env = env_on(dialect)
    servers[dialect].set_faults(fault(kind))
    client = env.models.client
    if kind in TIMED:
        client.backends[0].http.timeout_s = client._dispatcher.load_timeout_s = TIMEOUT_S
    with pytest.raises(ServerUnavailableError) as ended:
        env.reset()
    assert FAULTS[kind].reason.format(model=TARGET, timeout_s=TIMEOUT_S) in str(ended.value)
    assert "\n" not in str(ended.value)
    assert kept(env.models) == 0


@matrix
@pytest.mark.parametrize("timed", [True, False])
def test_a_fault_that_passes_is_retried_where_that_can_help(dialect: str, timed: bool) -> None:
    """Each kind strikes the first call to a model of its own, all at once: waits are shared."""
    kinds = sorted(FAULTS.keys() & TIMED if timed else FAULTS.keys() - TIMED)
    timeout_s = 1.0 if timed else PATIENCE_S
    faults = [fault(kind, model=kind, times=1) for kind in kinds]
    with SimulatedServer(dialects=(dialect,), models=kinds, max_loaded=99, faults=faults) as server:
        settings = ModelSettings(
            server.url,
            timeout_s=timeout_s,
            load_timeout_s=timeout_s,
            retries=1,
            target_model=kinds[0],
        )
        connection = connect(settings)
        for kind in kinds:
            connection.backends[0].also_serves("answer", kind, "")
        client = ModelClient(connection.backends, settings)
        outcomes = client.run([ask("is it retried?", kind) for kind in kinds], max_workers=64)
        client.close()
    answered = {kind for kind, outcome in zip(kinds, outcomes, strict=True) if not outcome.failed}
    assert answered == {kind for kind in kinds if FAULTS[kind].retried}
    assert [outcome.attempts for outcome in outcomes] == [
        2 if FAULTS[kind].retried else 1 for kind in kinds
    ]


@matrix
def test_hostile_text_is_an_answer_that_can_be_written_and_sent_again(
    dialect: str, servers: dict[str, SimulatedServer], env_on: Callable[..., QueryMutationEnv]
) -> None:
    env = env_on(dialect)
    servers[dialect].set_faults(fault("hostile_text"))
    _, opening = env.reset()
    *_, info = env.step(action_of(env, "rephrase"))
    assert not info["failed"]
    for text in (opening["answer"], info["answer"], info["rewritten_query"]):
        text.encode("utf-8")
    assert "�" in opening["answer"], "half a surrogate pair is replaced"
    assert env.models.client.counts().failed_calls == 0


@pytest.mark.parametrize(
    ("kind", "dialect"),
    [("hang", "ollama"), ("load_failure", "openai"), ("deep", "ollama"), ("not_found", "openai")],
)
def test_a_run_that_cannot_start_ends_with_one_line_and_leaves_nothing(
    kind: str,
    dialect: str,
    servers: dict[str, SimulatedServer],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = servers[dialect]
    server.set_faults(fault(kind))
    argv = ["--server", server.url, *SIMULATED_FLAGS, "--run-dir", str(tmp_path / "run")]
    timeout_s = "2" if kind in TIMED else "20"  # the server is found within it, too
    argv += ["--timeout", timeout_s, "--load-timeout", timeout_s, "--retries", "0"]
    argv += ["--num-processes", "2", "--no-cache", "--num-questions", "10"]
    assert main(argv) == 2
    server.set_faults()
    said = capsys.readouterr().err
    assert "Traceback" not in said
    errors = [line for line in said.splitlines() if "the run has not begun" in line]
    assert len(errors) == 1
    assert FAULTS[kind].reason.format(model=TARGET, timeout_s=timeout_s) in errors[0]
    assert not (tmp_path / "run").exists()
