"""The key: whom it is sent to, and that it appears nowhere else."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import exit_code
from query_mutator.models.addresses import normalise_url, ollama_url
from query_mutator.models.calls import CallFailedError
from query_mutator.models.connect import connect
from query_mutator.models.http import HttpServer
from query_mutator.models.keys import check_servers_of_file, keys_for
from query_mutator.models.settings import ModelSettings
from query_mutator.runs.settings import build_parser, parse_settings
from query_mutator.servers.simulated import Fault, SimulatedServer
from tests.conftest import SIMULATED_FLAGS, SIMULATED_MODELS
from tests.test_deadlines import answering, raw_server
from tests.test_outage import Lines
from train_query_mutator import main as train

SECRET = "sk-very-secret-1"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERY_MUTATOR_API_KEY", SECRET)
    monkeypatch.delenv("QUERY_MUTATOR_API_KEY_HOST", raising=False)


def authorisations(server: SimulatedServer) -> set[str | None]:
    return {request.headers.get("authorization") for request in server.stats.last_requests}


def test_what_auto_finds_is_not_sent_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with SimulatedServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        connect(ModelSettings("auto", **SIMULATED_MODELS)).close()
        assert authorisations(server) == {None}
        connect(ModelSettings(server.url, **SIMULATED_MODELS)).close()
        assert f"Bearer {SECRET}" in authorisations(server)


def test_with_servers_on_several_hosts_the_user_says_whose_the_key_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = ["https://one.example", "http://127.0.0.1:1"]
    with pytest.raises(UserError, match=r"on 2 hosts.*QUERY_MUTATOR_API_KEY_HOST") as caught:
        keys_for(both)
    assert SECRET not in str(caught.value)
    monkeypatch.setenv("QUERY_MUTATOR_API_KEY_HOST", "one.example, other.example")
    assert keys_for(both) == {both[0]: SECRET, both[1]: None}


def test_one_host_may_have_several_ports() -> None:
    urls = ["http://localhost:1", "http://localhost:2"]
    assert set(keys_for(urls).values()) == {SECRET}


def test_a_server_that_only_a_file_names_is_not_sent_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"settings": {"server": ["https://elsewhere.example"]}}))
    parser = build_parser("train", "")
    with pytest.raises(UserError, match="should the key go there"):
        parse_settings(parser, ["--config", str(config)])
    named = parse_settings(parser, ["--config", str(config), "--server", "https://mine.example"])
    assert named.server == ["https://mine.example"]
    monkeypatch.setenv("QUERY_MUTATOR_API_KEY_HOST", "mine.example")
    assert parse_settings(parser, ["--config", str(config)]).server
    assert keys_for(["https://elsewhere.example"]) == {"https://elsewhere.example": None}


def test_servers_of_this_machine_may_come_from_a_file() -> None:
    check_servers_of_file(["embedded", "http://localhost:1", "127.0.0.1:8000"], "config.json")


def test_a_key_sent_in_the_clear_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    keys_for(["http://box.example:8000", "https://box.example"])
    assert len(caplog.records) == 1
    assert "without encryption" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("key", ["two words", "line\nHost: evil", "schlüssel", "bell\x07"])
def test_a_key_that_would_be_another_header_is_refused(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUERY_MUTATOR_API_KEY", key)
    with pytest.raises(UserError, match="characters that no key has") as caught:
        keys_for(["http://localhost:1"])
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["http://me:hunter22@box:1", "me:hunter22@box", "https://box/?key=hunter22", "box#hunter22"],
)
def test_an_address_with_a_secret_is_refused_without_repeating_it(address: str) -> None:
    for read in (normalise_url, ollama_url):
        with pytest.raises(UserError, match="without user name") as caught:
            read(address)
        assert "hunter22" not in str(caught.value)


def test_passwords_of_netrc_and_proxies_of_the_environment_stay_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter22\ndefault login a password b\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with SimulatedServer() as server:
        HttpServer(server.url).get("/api/version")
        assert authorisations(server) == {None}
        HttpServer(server.url, api_key=SECRET).get("/api/version")
        assert authorisations(server) == {None, f"Bearer {SECRET}"}
    with_key = HttpServer("http://box.example", api_key=SECRET)
    assert with_key._proxies() == {}, "a proxy would read the key"
    assert HttpServer("https://box.example", api_key=SECRET)._proxies(), "it cannot, under TLS"


def test_a_server_that_repeats_the_key_does_not_bring_it_into_the_log() -> None:
    body = json.dumps({"error": f"wrong key {SECRET}"}).encode()
    with (
        raw_server(answering(body, status=b"HTTP/1.1 401 No\r\n")) as url,
        pytest.raises(CallFailedError) as caught,
    ):
        HttpServer(url, api_key=SECRET, timeout_s=30).get("/v1/models")
    assert caught.value.failure.reason == "HTTP 401: wrong key [key]"
    assert caught.value.__cause__ is None


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """All that is logged about calls and runs, down to each request."""
    handler = Lines()
    loggers = [logging.getLogger(name) for name in ("query_mutator", "urllib3")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield handler.lines
    for logger, level in zip(loggers, before, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def test_a_run_leaves_no_trace_of_the_key_and_only_the_user_can_read_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], logged: list[str]
) -> None:
    run = tmp_path / "run"
    flags = ["--num-processes", "2", "--num-steps", "4", "--num-env-steps", "8", "--retries", "0"]
    flags += ["--no-eval", "--eval-interval", "0", "--num-questions", "4", "--num-mini-batch", "1"]
    with SimulatedServer() as server:
        server.set_faults(Fault("bad_request", calls=(3,), text=f"what is {SECRET}?"))
        argv = ["--server", server.url, *SIMULATED_FLAGS, *flags, "--run-dir", str(run)]
        assert train(argv) == 0
        assert f"Bearer {SECRET}" in authorisations(server)
        assert server.stats.faults["bad_request"] == 1
    assert "what is [key]?" in (run / "transitions.jsonl").read_text(), "what the server said"
    for file in [*run.rglob("*"), *(tmp_path / "cache-home").rglob("*")]:
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file
    said = capfd.readouterr()
    assert any("POST /api/chat" in line for line in logged), "requests are logged"
    assert SECRET not in said.out + said.err + "".join(logged)
    for place in (run, tmp_path / "cache-home" / "query-mutator"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_bug_in_a_command_is_a_traceback_and_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def command() -> int:
        raise KeyError("\x1b]0;owned\x07")

    assert exit_code(command) == 1
    assert "KeyError" in capsys.readouterr().err
