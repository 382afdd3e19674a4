"""Finding a server: what the user types, what answers, and what is said when nothing does."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from query_mutator.base.errors import UserError
from query_mutator.models.addresses import normalise_url, ollama_url
from query_mutator.models.connect import connect
from query_mutator.models.session import open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.embedded import MODEL_NAME
from query_mutator.servers.simulated import Fault, SimulatedServer

BOTH: dict[str, Any] = {"mutator_model": "qwen2.5:3b", "target_model": "llama3.2:3b"}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        ("example.com:1234", "http://example.com:1234"),
        ("http://example.com", "http://example.com:80"),
        ("https://example.com", "https://example.com:443"),
        ("https://example.com:56789/path/", "https://example.com:56789/path"),
        (":56789", "http://127.0.0.1:56789"),
        ("0.0.0.0:1", "http://127.0.0.1:1"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:5", "http://[::1]:5"),
        ("::", "http://[::1]:11434"),
        ("example.com:99999", "http://example.com:11434"),
        (' "example.com" ', "http://example.com:11434"),
    ],
)
def test_ollama_host_is_read_by_ollamas_own_rules(host: str, url: str) -> None:
    assert ollama_url(host) == url


@pytest.mark.parametrize("text", ["", "ftp://box", "http://", "http://box:port", "http://:80"])
def test_what_is_not_a_server_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a server"):
        normalise_url(text)


def test_auto_takes_the_ollama_that_has_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    with SimulatedServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        connection = connect(ModelSettings("auto", **BOTH))
        assert connection.servers == [server.url]
        assert connection.backends[0].dialect.name == "ollama"
        assert server.url in connection.why


def test_auto_refuses_a_named_model_that_nothing_has(monkeypatch: pytest.MonkeyPatch) -> None:
    with SimulatedServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        with pytest.raises(UserError, match="ollama pull mistral"):
            connect(ModelSettings("auto", target_model="mistral"))


@pytest.mark.slow
def test_auto_falls_back_to_the_embedded_model_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{free_port()}")
    connection = connect(ModelSettings("auto", slots=2, num_ctx=512))
    try:
        assert connection.target_model == connection.mutator_model == MODEL_NAME
        assert "no Ollama answers" in connection.why
        assert connection.backends[0].dialect.name == "openai"
        assert connection.backends[0].slots == 2, "llama.cpp tells"
        assert connection.servers == ["embedded"]
    finally:
        connection.close()


def test_a_dead_url_is_an_error_with_a_hint_and_no_fallback() -> None:
    with pytest.raises(UserError, match=r"connection refused.*\n.*--server embedded"):
        connect(ModelSettings(f"http://127.0.0.1:{free_port()}", **BOTH))


def test_something_else_that_answers_is_not_taken_for_a_model_server() -> None:
    with SimulatedServer() as server:
        server.set_faults(Fault("html", path="/*"))
        with pytest.raises(UserError, match="answers, but neither"):
            connect(ModelSettings(server.url, **BOTH))


def test_a_missing_model_is_named_with_those_there_are() -> None:
    with SimulatedServer() as server, pytest.raises(UserError) as caught:
        connect(ModelSettings(server.url, target_model="mistral:7b"))
    assert "no model 'mistral:7b'" in str(caught.value)
    assert "qwen2.5:3b, llama3.2:3b" in str(caught.value)
    assert "ollama pull mistral:7b" in str(caught.value)


def test_latest_need_not_be_typed() -> None:
    with SimulatedServer(models=("llama3.2:latest",)) as server:
        assert (
            connect(ModelSettings(server.url, target_model="llama3.2")).target_model == "llama3.2"
        )


def test_one_name_serves_for_both_and_an_only_model_needs_none() -> None:
    with SimulatedServer(models=("one:1b",)) as server:
        assert connect(ModelSettings(server.url)).mutator_model == "one:1b"
    with SimulatedServer() as server:
        assert (
            connect(ModelSettings(server.url, target_model="qwen2.5:3b")).mutator_model
            == "qwen2.5:3b"
        )
        with pytest.raises(UserError, match="name the models"):
            connect(ModelSettings(server.url))


def test_v1_at_the_end_of_the_url_is_fine() -> None:
    with SimulatedServer(dialects=("openai",)) as server:
        assert (
            connect(ModelSettings(server.url + "/v1/", **BOTH)).backends[0].dialect.name == "openai"
        )


def test_the_first_call_of_a_model_goes_alone_and_has_the_time_to_load_it() -> None:
    with SimulatedServer(load_time_s=0.5) as server:
        with open_models(
            ModelSettings(server.url, **BOTH, timeout_s=0.3, load_timeout_s=10, retries=0)
        ) as models:
            calls = [models.roles.answer_call(f"question {n}?") for n in range(4)]
            assert server.stats.generation_calls == 0, "nothing is asked in vain"
            assert not any(outcome.failed for outcome in models.client.run(calls))
        assert server.stats.loads_by_model == {"llama3.2:3b": 1}


def test_a_model_whose_first_call_fails_counts_as_gone() -> None:
    with SimulatedServer() as server:
        server.set_faults(Fault("load_failure", times=1))
        with open_models(ModelSettings(server.url, **BOTH, retries=0)) as models:
            models.client.run([models.roles.answer_call("anyone?")])
            assert "did not answer its first call" in models.client.why_gone()
            models.client.run([models.roles.answer_call("anyone now?")])
            assert models.client.why_gone() == ""


def test_a_model_may_be_on_one_of_several_servers() -> None:
    with (
        SimulatedServer(models=("qwen2.5:3b",)) as first,
        SimulatedServer(models=("llama3.2:3b",)) as second,
        open_models(ModelSettings([first.url, second.url], **BOTH)) as models,
    ):
        models.client.run([models.roles.answer_call("What?")])
        models.client.run([models.roles.mutation_call([{"role": "user", "content": "what"}])])
        assert first.stats.calls_by_model == {"qwen2.5:3b": 1}
        assert second.stats.calls_by_model == {"llama3.2:3b": 1}


def test_mutator_and_target_may_have_servers_of_their_own() -> None:
    with SimulatedServer() as first, SimulatedServer() as second:
        options: dict[str, Any] = {"mutator_server": [first.url], "target_server": [second.url]}
        with open_models(ModelSettings([], **options, target_model="llama3.2:3b")) as models:
            models.client.run([models.roles.answer_call(f"{n}?") for n in range(5)])
            models.client.run([models.roles.mutation_call([{"role": "user", "content": "a"}])])
        assert first.stats.calls_by_model == {"llama3.2:3b": 1}
        assert second.stats.calls_by_model == {"llama3.2:3b": 5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server": ["auto", "box:1"]}, "auto stands alone"),
        (
            {"server": ["box:1"], "mutator_server": ["a:1"], "target_server": ["b:1"]},
            "leave it out",
        ),
        ({"mutator_server": ["auto"]}, "name the server"),
    ],
)
def test_servers_that_make_no_sense_together_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        connect(ModelSettings(**options, **BOTH))


def test_the_key_goes_to_the_server_and_follows_no_redirect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QUERY_MUTATOR_API_KEY", "secret-1")
    with SimulatedServer(dialects=("openai",)) as server:
        connect(ModelSettings(server.url, **BOTH))
        assert server.stats.last_requests[-1].headers["authorization"] == "Bearer secret-1"
        server.reset_stats()

        class Redirect(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(302)
                self.send_header("Location", server.url + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Silence."""

        with HTTPServer(("127.0.0.1", 0), Redirect) as redirecting:
            threading.Thread(target=redirecting.serve_forever, daemon=True).start()
            with pytest.raises(UserError, match="HTTP 302") as caught:
                connect(ModelSettings(f"http://127.0.0.1:{redirecting.server_port}", **BOTH))
            redirecting.shutdown()
        assert server.stats.requests == 0
        assert "secret-1" not in str(caught.value)
