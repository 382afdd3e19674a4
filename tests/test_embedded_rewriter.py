"""The embedded model as target and as tuned rewriter: neither disturbs the other."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import requests

from mutate_query import main as mutate
from ollama_utils import batch_mutate_queries, batch_query_target_model
from query_mutator.base.errors import UserError
from query_mutator.base.weights import gguf_path
from query_mutator.environment.asking import Mutation
from query_mutator.models.connect import connect, told_digests
from query_mutator.models.session import Models, open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.operators import Operator, shipped_operators
from query_mutator.operators.tuned import tuned_messages
from query_mutator.servers.embedded import MODEL_NAME, REWRITER_NAME
from query_mutator.servers.embedded import run as serve_embedded
from query_mutator.servers.rewriters import find_rewriter
from query_mutator.servers.simulated import SimulatedServer
from tests.adapters import rewriter_directory
from tests.conftest import FEW_QUESTIONS, SIMULATED_MODELS
from tests.waiting import ENOUGH_S
from train_query_mutator import main as train

QUESTIONS = [
    "What is the capital of Peru?",
    "how much legs has a spider",
    "hey so my son asked me, why is the sky blue",
    "Who wrote Hamlet?",
    "note doctor writes so get medicine at pharmacy, term?",
]
CLARIFY = next(operator for operator in shipped_operators() if operator.name == "clarify")
AS_IT_IS = Operator("raw", preserves_meaning=False, instruction=CLARIFY.instruction, tuned=True)
"""`clarify` without the checks of its rewrites: random weights say anything."""


@pytest.fixture(scope="module")
def rewriter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rewriter_directory(tmp_path_factory.mktemp("rewriters") / "one")


def embedded(rewriter: Path | str, cache: Path | None = None) -> Models:
    return open_models(
        ModelSettings(
            "embedded",
            slots=2,
            num_ctx=512,
            max_tokens_answer=16,
            max_tokens_mutation=12,
            rewriter=rewriter,
            cache_file=cache,
        )
    )


def rewritten(models: Models, operator: Operator = AS_IT_IS) -> list[Mutation]:
    return batch_mutate_queries(QUESTIONS, operator, models=models, max_workers=1)


@pytest.mark.slow
def test_the_target_answers_as_it_does_without_a_rewriter(rewriter: Path) -> None:
    with embedded("none") as models:
        assert models.roles.rewriter_model == ""
        alone = batch_query_target_model(QUESTIONS, models=models, max_workers=1)
    with embedded(rewriter) as models:
        assert models.connection.embedded
        url = models.connection.embedded.rewriter_url
        ended = threading.Event()
        replies: list[str] = []

        def rewrite_all_the_time() -> None:
            while not ended.is_set():
                for question in QUESTIONS:
                    asked = {"messages": [*tuned_messages(question)], "max_tokens": 12}
                    found = requests.post(
                        f"{url}/v1/chat/completions",
                        json=asked | {"temperature": 0},
                        timeout=ENOUGH_S,
                    ).json()
                    replies.append(found["choices"][0]["message"]["content"])

        threads = [threading.Thread(target=rewrite_all_the_time) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            beside = batch_query_target_model(QUESTIONS, models=models, max_workers=1)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    assert replies
    assert [answer.text for answer in beside] == [answer.text for answer in alone]
    assert not any(answer.failed for answer in beside)


@pytest.mark.slow
def test_a_tuned_operator_asks_the_rewriter_in_the_way_it_was_trained(rewriter: Path) -> None:
    with embedded(rewriter) as models:
        assert models.connection.servers == ["embedded"]
        assert models.roles.mutator_model == models.roles.target_model == MODEL_NAME
        rewrites = rewritten(models)
        calls = {b.name: b.calls for b in models.client.servers()}
        assert models.connection.embedded
        address = models.connection.embedded.rewriter_url.removeprefix("http://")
        assert calls.pop(address) == len(QUESTIONS)
        assert set(calls.values()) == {0}
        asked = {"messages": [*tuned_messages(QUESTIONS[0])], "temperature": 0, "stop": ["\n"]}
        by_itself, by_the_target = (
            requests.post(
                f"{url}/v1/chat/completions", json=asked | {"max_tokens": 12}, timeout=ENOUGH_S
            ).json()
            for url in (f"http://{address}", models.connection.embedded.url)
        )
        batch_mutate_queries(QUESTIONS[:1], "rephrase", models=models)
        assert sum(b.calls for b in models.client.servers()) == len(QUESTIONS) + 1
    first = rewrites[0].call
    assert first is not None
    assert first.text == by_itself["choices"][0]["message"]["content"]
    assert first.text != by_the_target["choices"][0]["message"]["content"]
    assert first.reply.prompt_tokens == by_itself["usage"]["prompt_tokens"]


@pytest.mark.slow
def test_answers_of_other_weights_are_not_remembered_for_these(
    rewriter: Path, tmp_path: Path
) -> None:
    cache, other = tmp_path / "cache.sqlite", rewriter_directory(tmp_path / "two", seed=2)
    found = []
    for adapter in (rewriter, other, rewriter, "none"):
        with embedded(adapter, cache) as models:
            rewrites = rewritten(models)
            found.append([rewrite.call for rewrite in rewrites])
            digests = told_digests(models.client.backends)
            assert (REWRITER_NAME in digests) == (adapter != "none")
    first, second, again, without = found
    assert all(call and not call.cached for call in [*first, *second, *without])
    assert all(call and call.cached for call in again)
    texts = [[call.text for call in calls if call] for calls in (first, second, again, without)]
    assert texts[0] == texts[2]
    assert texts[0] != texts[1]
    assert texts[3] not in texts[:2]


def test_what_is_no_rewriter_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no GGUF")
    (tmp_path / "trained" / "adapter").mkdir(parents=True)
    for path, told in {
        tmp_path / "text.gguf": "is not a GGUF file; --rewriter takes an adapter",
        tmp_path / "trained": f"make it with: query-mutator export-adapter {tmp_path}/trained/ada",
        tmp_path / "nothing": "cannot read the rewriter",
    }.items():
        with pytest.raises(UserError, match=r"rewriter|GGUF") as caught:
            connect(ModelSettings("embedded", rewriter=path))
        assert told in str(caught.value)
    assert find_rewriter("none") is None


def test_a_rewriter_goes_with_the_embedded_model_alone(
    server: SimulatedServer, rewriter: Path
) -> None:
    settings = ModelSettings(server.url, rewriter=rewriter, **SIMULATED_MODELS)
    with pytest.raises(UserError, match=r"and qwen2\.5:3b rewrites: leave it out"):
        connect(settings)


@pytest.mark.slow
def test_a_model_that_is_no_adapter_does_not_start() -> None:
    with pytest.raises(UserError, match=r"did not start with the rewriter .*serve-embedded"):
        connect(ModelSettings("embedded", slots=1, num_ctx=512, rewriter=gguf_path()))


def test_a_port_that_the_rewriter_cannot_have_is_told(rewriter: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for before, told in ((port - 1, f"port {port}, where"), (65535, "that follows 65535")):
            with pytest.raises(UserError, match=f"{told}.*--rewriter none"):
                serve_embedded(["--port", str(before), "--rewriter", str(rewriter)])


@pytest.mark.slow
def test_what_llama_says_of_an_adapter_that_is_none_is_passed_on() -> None:
    command = [sys.executable, "-m", "query_mutator.servers.embedded", "--port", "0"]
    command += ["--slots", "1", "--num-ctx", "512", "--rewriter", str(gguf_path())]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ENOUGH_S)
    assert ended.returncode == 2
    assert "is it an adapter of this model?): Failed to" in ended.stderr


def test_with_other_servers_clarify_asks_the_mutator_by_instruction_and_examples(
    server: SimulatedServer, models_for: object
) -> None:
    models = models_for(server)  # type: ignore[operator]
    assert models.roles.rewriter_model == ""
    rewrite = batch_mutate_queries(["wat is teh capital of peru"], "clarify", models=models)[0]
    assert not rewrite.failed
    chat = CLARIFY.messages("x")
    assert len(chat) == 2 + 2 * len(CLARIFY.examples)
    assert server.stats.generation_calls == 1


@pytest.mark.slow
def test_a_run_asks_it_for_rewrites_and_so_does_its_policy(
    rewriter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    flags = ["--num-processes", "2", "--num-steps", "2", "--num-env-steps", "8", "--no-eval"]
    flags += ["--batch-size", "2", "--max-tokens-answer", "4", "--max-tokens-mutation", "4"]
    flags += ["--dataset", str(FEW_QUESTIONS), "--num-questions", "4", "--eval-interval", "0"]
    flags += ["--only-operators", "clarify", "--no-report", "--rewriter", str(rewriter)]
    assert train(["--server", "embedded", "--run-dir", str(run), *flags]) == 0
    config = json.loads((run / "config.json").read_text())
    assert config["settings"]["server"] == ["embedded"]
    assert config["settings"]["rewriter"] == str(rewriter)
    assert config["weights"][REWRITER_NAME][0].endswith(find_rewriter(rewriter).sha256)  # type: ignore[union-attr]
    assert "mutation" in "".join((run / "transitions.jsonl").read_text().splitlines())
    assert train(["--resume", "--run-dir", str(run), "--rewriter", "none"]) == 2
    assert "cannot resume" in capsys.readouterr().err
    assert mutate(["--run", str(run), "--json", "wat is teh capital of peru"]) == 0
    assert json.loads(capsys.readouterr().out)["failed"] == ""
