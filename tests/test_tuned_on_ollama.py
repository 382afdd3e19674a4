"""A model of Ollama's that was tuned to rewrite is asked as it was trained: its Modelfile tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ollama_utils import mutate_query
from query_mutator.base.errors import UserError
from query_mutator.models.connect import connect
from query_mutator.models.session import open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.operators import named_operators
from query_mutator.operators.tuned import tuned_messages
from query_mutator.servers.simulated import Fault, SimulatedServer
from query_mutator.tuning.export.bases import Base
from query_mutator.tuning.export.modelfile import modelfile
from tests.conftest import FEW_QUESTIONS
from tests.test_training import train

BASE = Base("a model", "llama", 2, 4, 2, chat_template="<|im_start|>", ollama="smollm2:135m")
SYSTEM = re.findall('^SYSTEM "(.*)"$', modelfile(BASE, adapter="a.gguf", merged=None), re.MULTILINE)
TUNED = {"mine:latest": SYSTEM[0]}
QUESTION = "wat is teh capital of peru pls"
MODELS: dict[str, Any] = {"mutator_model": "mine", "target_model": "llama3.2:3b"}
CLARIFY, REPHRASE = named_operators(["clarify", "rephrase"])
CORRECTED = CLARIFY.edit(QUESTION)
"""What `clarify` asks: the question after its edits."""


def ollama(**options: Any) -> SimulatedServer:
    """A server with the model `mine`, which was tuned unless something else is said."""
    options = {"system_prompts": TUNED, "models": ("mine:latest", "llama3.2:3b")} | options
    return SimulatedServer(**options, answer=lambda *_: "What is the capital of Peru?")


def asked(server: SimulatedServer, operator: str = "clarify", **options: Any) -> list[Any]:
    """The chat that the mutator on the server is sent."""
    with open_models(ModelSettings(server.url, **MODELS, **options)) as models:
        rewrite = mutate_query(QUESTION, operator, models=models)
        assert rewrite.question == "What is the capital of Peru?"
        assert not rewrite.reason
    sent = server.stats.last_requests[-1].body
    assert sent["model"] == "mine"
    return list(sent["messages"])


def test_it_is_asked_with_a_short_instruction_and_no_examples() -> None:
    with ollama() as server:
        assert asked(server) == list(tuned_messages(CORRECTED))


def test_other_instructions_are_sent_to_it_as_they_are() -> None:
    with ollama() as server:
        assert asked(server, "rephrase") == list(REPHRASE.messages(QUESTION))


@pytest.mark.parametrize("said", ["", "You are a pirate.", f"{SYSTEM[0]} Be brief."])
def test_a_model_of_another_system_prompt_is_shown_the_examples(said: str) -> None:
    with ollama(system_prompts={"mine:latest": said}) as server:
        assert asked(server) == list(CLARIFY.messages(CORRECTED))


def test_who_wants_no_rewriter_has_it_asked_like_any_other() -> None:
    with ollama() as server:
        assert asked(server, rewriter="none") == list(CLARIFY.messages(CORRECTED))
        assert "/api/show" not in {request.path for request in server.stats.last_requests}


@pytest.mark.parametrize("kind", ["not_found", "bad_request"])
def test_a_server_without_the_page_that_tells_has_no_such_model(kind: str) -> None:
    with ollama(faults=[Fault(kind, path="/api/show")]) as server:
        assert asked(server) == list(CLARIFY.messages(CORRECTED))


def test_a_server_of_another_kind_has_no_such_model() -> None:
    with ollama(dialects=["openai"], models=("mine", "llama3.2:3b")) as server:
        assert asked(server) == list(CLARIFY.messages(CORRECTED))


def test_it_must_be_tuned_on_every_server_that_has_it() -> None:
    with ollama() as server, ollama() as same, ollama(system_prompts={}) as other:
        settings = [ModelSettings([server.url, one.url], **MODELS) for one in (same, other)]
        connections = [connect(one) for one in settings]
        assert [one.rewriter_model for one in connections] == ["mine", ""]
        for connection in connections:
            connection.close()


def test_the_target_may_be_tuned_without_the_mutator_being_so() -> None:
    with ollama(system_prompts={"llama3.2:3b": SYSTEM[0]}) as server:
        assert asked(server) == list(CLARIFY.messages(CORRECTED))


@pytest.mark.parametrize("kind", ["busy", "reset", "html"])
def test_a_server_that_fails_when_it_is_asked_about_the_model_is_told(kind: str) -> None:
    with (
        ollama(faults=[Fault(kind, path="/api/show")]) as server,
        pytest.raises(UserError, match="does not tell about mine"),
    ):
        connect(ModelSettings(server.url, **MODELS))


def test_a_run_says_that_its_mutator_was_tuned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--dataset", str(FEW_QUESTIONS), "--mutator-model", "mine"]
    with ollama() as server:
        assert train(server, tmp_path / "tuned", "--only-operators", "clarify,qa", *flags) == 0
        assert "mutator mine (tuned to rewrite), target llama3.2:3b" in capsys.readouterr().err
        assert train(server, tmp_path / "not", "--only-operators", "qa", *flags) == 0
        assert "mutator mine, target llama3.2:3b" in capsys.readouterr().err


def test_the_simulated_server_gives_a_model_its_own_system_prompt() -> None:
    def answer(model: str, system: str, prompt: str) -> str:
        return f"told: {system}"

    with (
        SimulatedServer(models=("mine",), system_prompts={"mine": "Be."}, answer=answer) as server,
        open_models(ModelSettings(server.url, mutator_model="mine")) as models,
    ):
        alone = models.client.run([models.roles.answer_call("Who?")])[0].text
        said = models.client.run([models.roles.mutation_call(tuned_messages("Who?"))])[0].text
    assert (alone, said) == ("told: Be.", f"told: {SYSTEM[0]}")
