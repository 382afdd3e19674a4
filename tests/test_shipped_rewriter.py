"""The adapter that comes with the package."""

from __future__ import annotations

from collections.abc import Iterator

import gguf
import pytest

from query_mutator.base.weights import gguf_path
from query_mutator.environment.asking import mutation_flow
from query_mutator.models.session import Models, open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.operators import named_operators
from query_mutator.servers.rewriters import SHIPPED

(CLARIFY,) = named_operators(["clarify"])
CLEARLY = {
    "wat is teh captial of peru": {"capital", "peru"},
    "um so like, how many legs has, you know, a spider": {"many", "legs", "spider"},
    "our train was late and it rained, who wrote hamlet": {"who", "wrote", "hamlet"},
}
"""Messy questions, and words that the same question has when it is asked clearly."""


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    with open_models(ModelSettings("embedded", slots=2, num_ctx=512)) as opened:
        yield opened


def test_it_is_an_adapter_of_the_embedded_model_of_some_megabytes() -> None:
    assert SHIPPED.stat().st_size < 12e6
    reader, base = gguf.GGUFReader(SHIPPED), gguf.GGUFReader(gguf_path())
    names = {tensor.name for tensor in base.tensors}
    adapted = {tensor.name.removesuffix(".lora_a") for tensor in reader.tensors} & names
    assert len(adapted) == len(reader.tensors) // 2
    assert reader.fields["general.type"].contents() == "adapter"
    assert SHIPPED.with_name("README.md").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("typed", CLEARLY)
def test_it_asks_clearly(typed: str, models: Models) -> None:
    flow = mutation_flow(typed, CLARIFY, models.roles)
    mutation = models.runner({}, max_workers=None).run([flow])[0]
    words = set(mutation.question.casefold().rstrip("?").split())
    assert (mutation.refused, mutation.question[-1]) == ("", "?")
    assert words >= CLEARLY[typed]
    assert len(mutation.question) <= len(typed) + 12
