"""The batched functions: order, twins, fall-backs, and what counts as a usable rewrite."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ollama_utils import (
    DEFAULT_REFUSAL,
    batch_encode_queries,
    batch_mutate_queries,
    batch_query_target_model,
    encode_query,
    mutate_query,
    query_target_model,
)
from query_mutator.models.encoders import Encoder
from query_mutator.models.session import Models
from query_mutator.operators import Operator
from query_mutator.servers.simulated import Fault, SimulatedServer
from tests.embedding import packaged

MakeModels = Callable[..., Models]
QUERIES = ["wat is the capitol of peru", "how many legs has a spider", "who painted guernica"]


def test_embeddings_have_unit_length_and_do_not_depend_on_company() -> None:
    embedder = packaged(1)
    texts = ["a short one", "a rather longer text about a dog that sleeps all day", "x"]
    together = Encoder(embedder).encode_each(texts)
    reversed_ = Encoder(embedder).encode_each(texts[::-1])[::-1]
    assert np.array_equal(together, reversed_)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_each_text_is_embedded_once(encoder: Encoder) -> None:
    class Counting:
        dimension = encoder.dimension
        exact_in_batches = True
        texts = 0

        def embed(self, texts: Sequence[str]) -> np.ndarray:
            self.texts += len(texts)
            return encoder._embedder.embed(texts)

    counting = Counting()
    fresh = Encoder(counting)
    fresh.encode(["one", "two", "one"])
    fresh.encode_each(["two", "three"])
    assert counting.texts == 3


def test_the_single_call_is_a_batch_of_one(server: SimulatedServer, models_for: MakeModels) -> None:
    models = models_for(server)
    assert np.array_equal(
        batch_encode_queries(QUERIES, models=models)[1], encode_query(QUERIES[1], models=models)
    )
    rewritten = batch_mutate_queries(QUERIES, "rephrase", models=models)
    assert rewritten[1].text == mutate_query(QUERIES[1], "rephrase", models=models).text
    answers = batch_query_target_model(QUERIES, models=models)
    assert answers[1].text == query_target_model(QUERIES[1], models=models).text


def test_each_query_can_have_its_own_operator(
    server: SimulatedServer, models_for: MakeModels
) -> None:
    models = models_for(server)
    rewrites = batch_mutate_queries(QUERIES, ["qa", "rephrase", "one_sentence"], models=models)
    assert [rewrite.operator for rewrite in rewrites] == ["qa", "rephrase", "one_sentence"]
    assert rewrites[0].question == "What is the capitol of Peru?"
    assert rewrites[0].text == f"Question: {rewrites[0].question}\nAnswer:"
    assert server.stats.generation_calls == 1, "templates need no model"
    with pytest.raises(ValueError, match="3 queries but 2 operators"):
        batch_mutate_queries(QUERIES, ["qa", "qa"], models=models)
    with pytest.raises(ValueError, match="did you mean 'rephrase'"):
        batch_mutate_queries(QUERIES, "rephrse", models=models)


def test_a_failed_mutation_yields_the_original_query(
    server: SimulatedServer, models_for: MakeModels
) -> None:
    models = models_for(server)
    server.set_faults(Fault("runner_crash", calls=(2,)))
    rewrites = batch_mutate_queries(QUERIES, "rephrase", models=models, max_workers=1)
    assert [rewrite.failed for rewrite in rewrites] == [False, True, False]
    assert rewrites[1].text == QUERIES[1]
    assert "unexpectedly stopped" in rewrites[1].reason


def test_a_failed_target_call_yields_the_default_refusal(
    server: SimulatedServer, models_for: MakeModels
) -> None:
    models = models_for(server)
    server.set_faults(Fault("bad_request", calls=(1,)))
    answers = batch_query_target_model(QUERIES, models=models, max_workers=1)
    assert [answer.failed for answer in answers] == [True, False, False]
    assert answers[0].text == DEFAULT_REFUSAL


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "said nothing"),
        ("The capital is Lima.", "does not end with"),
        ("word " * 200 + "?", "characters long"),
        ("Which city is the capital of Italy?", "repeats an example"),
        ("How do whales sleep at night?", "drift"),
    ],
)
def test_an_unusable_rewrite_is_refused_and_the_query_kept(
    said: str, reason: str, models_for: MakeModels
) -> None:
    with SimulatedServer(answer=lambda model, system, prompt: said) as server:
        models = models_for(server, max_tokens_mutation=1000)
        rewrite = mutate_query(QUERIES[0], "rephrase", models=models)
    assert rewrite.text == QUERIES[0]
    assert reason in rewrite.reason
    assert not rewrite.failed, "the call itself went well"


def test_an_operator_that_changes_the_meaning_may_go_far(models_for: MakeModels) -> None:
    operator = Operator("whale", preserves_meaning=False, instruction="Ask about whales.")
    with SimulatedServer(answer=lambda *_: "How do whales sleep at night?") as server:
        rewrite = mutate_query(QUERIES[0], operator, models=models_for(server))
    assert rewrite.text == "How do whales sleep at night?"


def test_an_embedding_model_on_the_server_can_be_used(models_for: MakeModels) -> None:
    from query_mutator.models.encoders import load_encoder

    with SimulatedServer() as server:
        client = models_for(server).client
        on_server = load_encoder("llama3.2:3b", client=client, num_ctx=512)
        vectors = on_server.encode([f"text {n}" for n in range(100)])
        requests = [r for r in server.stats.last_requests if r.path == "/api/embed"]
    assert [len(request.body["input"]) for request in requests] == [1, 64, 36]
    assert all(request.body["options"] == {"num_ctx": 512} for request in requests)
    assert vectors.shape == (100, on_server.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
