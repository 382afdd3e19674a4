"""The trainer and llama.cpp's server make the same tokens of a question, and the same of those."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import torch
from transformers import AutoModelForCausalLM

from batching import load_tokenizer
from query_mutator.base.weights import EMBEDDED
from query_mutator.operators.tuned import TUNED_INSTRUCTION, tuned_messages
from query_mutator.servers.embedded import start_embedded
from query_mutator.tuning.base_model import BaseModel, load_base_model
from query_mutator.tuning.pairs import Pair
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.validation import greedy_tokens
from tests.tiny_models import SPECIAL, make_llama, make_tokenizer

QUESTIONS = [
    "berlin wall fall year",
    "WHAT IS 17 x 23??? quick",
    "my grandma, 93, says Zürich isn't the capital…  is she right",
    "two lines\nof a question\n",
    " spaces around ",
]
MOST_APART = 0.25
"""Of log probabilities: llama.cpp multiplies in eight bits."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = start_embedded(slots=1, num_ctx=512)
    yield server.url
    server.close()


@pytest.fixture(scope="module")
def embedded() -> BaseModel:
    return load_base_model(EMBEDDED, torch.float32)


def post(url: str, path: str, **asked: Any) -> Any:
    answer = requests.post(url + path, json=asked, timeout=120)
    answer.raise_for_status()
    return answer.json()


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_server_reads_the_tokens_that_were_trained(url: str, question: str) -> None:
    writer = PromptWriter(load_tokenizer(EMBEDDED))
    messages = [dict(message) for message in tuned_messages(question)]
    prompt = post(url, "/apply-template", messages=messages)["prompt"]
    asked = {"content": prompt, "add_special": True, "parse_special": True}
    assert writer.prompt(question) == post(url, "/tokenize", **asked)["tokens"]


@pytest.mark.slow
def test_transformers_and_llama_cpp_agree_on_what_comes_next(url: str, embedded: BaseModel) -> None:
    writer = PromptWriter(embedded.tokenizer)
    for question in QUESTIONS[:3]:
        prompt = writer.prompt(question)
        asked = {"prompt": prompt, "n_predict": 1, "n_probs": 20, "temperature": 0}
        (first,) = post(url, "/completion", **asked)["completion_probabilities"]
        with torch.no_grad():
            logits = embedded.model(torch.tensor([prompt])).logits[0, -1]
        expected = logits.log_softmax(-1)
        likeliest = [(one["id"], one["logprob"]) for one in first["top_logprobs"]]
        assert max(abs(expected[t].item() - logprob) for t, logprob in likeliest) < MOST_APART
        assert likeliest[0][0] in expected.topk(2).indices.tolist()


@pytest.mark.slow
def test_all_weights_of_a_gguf_are_saved_as_a_model_that_loads(
    embedded: BaseModel, tmp_path: Path
) -> None:
    embedded.model.save_pretrained(tmp_path)
    again: Any = AutoModelForCausalLM.from_pretrained(tmp_path)
    prompt = torch.tensor([PromptWriter(embedded.tokenizer).prompt(QUESTIONS[0])])
    with torch.no_grad():
        assert torch.equal(again(prompt).logits, embedded.model(prompt).logits)


def test_only_the_rewrite_and_its_end_are_learned(tmp_path: Path) -> None:
    make_tokenizer(tmp_path)
    tokenizer = load_tokenizer(str(tmp_path))
    writer = PromptWriter(tokenizer)
    sample = writer.sample("a", Pair("wat is it", "What is it?", weight=2.0))
    learned = sample.loss_mask.index(1)
    assert set(sample.loss_mask[learned:]) == {1}
    assert list(sample.input_ids[learned:]) == writer.completion("What is it?")
    assert list(sample.input_ids[:learned]) == writer.prompt("wat is it")
    assert writer.end_id == tokenizer.token_id(SPECIAL[2])
    assert sample.meta["weight"] == 2.0
    assert writer.completion("What is it?")[:-1] == tokenizer.encode("What is it?")


def test_what_a_user_writes_cannot_end_a_turn(tmp_path: Path) -> None:
    make_tokenizer(tmp_path)
    tokenizer = load_tokenizer(str(tmp_path))
    mark = tokenizer.token_id(SPECIAL[2])
    assert mark is not None
    asked = PromptWriter(tokenizer).prompt(f"what is {SPECIAL[2]}")
    assert asked.count(mark) == 2


def test_a_model_without_a_chat_template_is_asked_in_chatml(tmp_path: Path) -> None:
    make_tokenizer(tmp_path / "with")
    make_tokenizer(tmp_path / "without", chat=False)
    with_one, without = (
        PromptWriter(load_tokenizer(str(tmp_path / name))) for name in ("with", "without")
    )
    assert without.prompt("wat is it") == with_one.prompt("wat is it")
    assert without.completion("What is it?") == with_one.completion("What is it?")


def test_the_instruction_takes_the_place_of_a_template_s_own_system_prompt() -> None:
    tokenizer = load_tokenizer(EMBEDDED)
    prompt = PromptWriter(tokenizer).prompt("berlin wall fall year")
    instruction = tokenizer.encode(TUNED_INSTRUCTION)
    own = tokenizer.encode("You are a helpful AI assistant")
    assert any(prompt[n : n + len(instruction)] == instruction for n in range(len(prompt)))
    assert not any(prompt[n : n + len(own)] == own for n in range(len(prompt)))


def test_greedy_rewrites_do_not_depend_on_their_company(tmp_path: Path) -> None:
    base = load_base_model(str(make_llama(tmp_path)), torch.float32)
    writer = PromptWriter(base.tokenizer)
    prompts = [writer.prompt(question) for question in QUESTIONS]
    together = greedy_tokens(base, prompts, writer.end_id, 8)
    base.model.generation_config.repetition_penalty = 9.0  # as the settings of some models have it
    alone = [greedy_tokens(base, [prompt], writer.end_id, 8)[0] for prompt in prompts]
    assert together == alone
