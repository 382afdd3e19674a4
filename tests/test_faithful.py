"""A model's rewrite that asks something else is not answered; the reason is kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from query_mutator.data import Question
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.transition import Transition
from query_mutator.models.encoders import Encoder, Vectors
from query_mutator.models.session import Models
from query_mutator.operators import Operator, named_operators
from query_mutator.runs.transitions import read_transitions
from query_mutator.servers.simulated import SimulatedServer
from tests.conftest import FEW_QUESTIONS
from tests.embedding import remembering
from tests.test_training import train

MakeModels = Callable[..., Models]
MakeEnv = Callable[..., QueryMutationEnv]

CLARIFY = named_operators(["clarify"])[0]
WITHOUT_EDITS = replace(CLARIFY, edits=())
SYDNEY = "whats teh capital of austrailia i always thougt sydney but my friend says no"
PENS = "so i had 9 pens n lost 2 on the bus, my sister laughed, how many do i have now"
PERU = "wat is teh capital of peru pls"
ROME = "Which big arena in Rome is called the Colosseum?"
CAMEL = "which big animal can NOT jump, my kid swears its the camel"
REFUSED = {
    "another number": (PENS, "I had 8 pens and lost 2. How many pens do I have now?"),
    "a number lost": (PENS, "I had 9 pens and lost some. How many pens do I have now?"),
    "another name": (PERU, "What is the capital of Chile?"),
    "a name lost": (ROME, "Which big arena is in Italy?"),
    "how many days lost": (
        "today is tuesday and a parcel comes in 3 days, on which weekday is that",
        "On which weekday does a parcel come on Tuesday?",
    ),
    "an abbreviation lost": (
        "at school they said AI all day, what do the letters stand for in computing",
        "What do the letters stand for in computing?",
    ),
    "the one thing asked about lost": (
        "feta - cheese of which country",
        "Which country is cheese from?",
    ),
    "a negation lost": (CAMEL, "Which big animal can jump?"),
    "a negation lost in a typed one": (
        "wich big aniaml is it that can not jump",
        "Which big animal can jump?",
    ),
    "an answer": (SYDNEY, "The capital of Australia is Canberra."),
    "another topic": (SYDNEY, "How do whales sleep at night?"),
    "another question": (SYDNEY, "How many people live in Australia?"),
}
KEPT = {
    "the side story left out": (PENS, "I had 9 pens and lost 2. How many pens do I have now?"),
    "the spelling corrected": (SYDNEY, "What is the capital of Australia?"),
    "the negation kept": (CAMEL, "Which big animal cannot jump?"),
}


def stepped(
    question: str,
    said: str,
    models_for: MakeModels,
    make_env: MakeEnv,
    *,
    faithful: bool = True,
    operator: Operator = WITHOUT_EDITS,
) -> tuple[Transition, int]:
    """The step in which the mutator said so, and the calls that it took."""

    def answer(model: str, system: str, prompt: str) -> str:
        return said if system == CLARIFY.instruction else "It is so."

    with SimulatedServer(answer=answer) as server:
        models = models_for(server, faithful=faithful)
        questions = [Question("q", question, reference="It is so.")]
        env = make_env(models, questions=questions, operators=[operator])
        env.reset(seed=1)
        before = server.stats.generation_calls
        return env.advance(1).info, server.stats.generation_calls - before


@pytest.mark.parametrize("name", REFUSED)
def test_a_rewrite_that_asks_something_else_is_refused_before_it_is_answered(
    name: str, models_for: MakeModels, make_env: MakeEnv
) -> None:
    question, said = REFUSED[name]
    step, calls = stepped(question, said, models_for, make_env)
    assert step.refused_rewrite.startswith(("drift ", "left out: ", "a n"))
    assert step.rewritten_query == question
    assert step.answer == step.previous_answer
    assert (step.reward, step.failed, calls) == (0.0, False, 1)  # the mutator's call alone


def test_the_edits_of_an_operator_are_done_where_its_rewrite_is_refused(
    models_for: MakeModels, make_env: MakeEnv
) -> None:
    step, calls = stepped(*REFUSED["another name"], models_for, make_env, operator=CLARIFY)
    assert step.refused_rewrite.startswith("drift ")
    assert (step.rewritten_query, calls) == (CLARIFY.edit(PERU), 2)
    assert step.rewritten_query.startswith("What is the capital of Peru")


@pytest.mark.parametrize("name", KEPT)
def test_a_rewrite_that_asks_the_same_is_answered(
    name: str, models_for: MakeModels, make_env: MakeEnv
) -> None:
    question, said = KEPT[name]
    step, calls = stepped(question, said, models_for, make_env)
    assert (step.refused_rewrite, step.rewritten_query, calls) == ("", said, 2)


def test_what_is_badly_typed_is_compared_as_it_is_corrected(
    models_for: MakeModels, make_env: MakeEnv
) -> None:
    typed, said = (
        "hwo mayn boens are ni a adutl huamn boddy",
        "How many bones are there in an adult human body?",
    )
    as_typed, _ = stepped(typed, said, models_for, make_env)
    assert as_typed.refused_rewrite.startswith("drift ")
    corrected, _ = stepped(typed, said, models_for, make_env, operator=CLARIFY)
    assert (corrected.refused_rewrite, corrected.rewritten_query) == ("", said)


def test_whoever_does_not_want_the_check_has_every_rewrite_answered(
    models_for: MakeModels, make_env: MakeEnv
) -> None:
    question, said = REFUSED["another topic"]
    step, calls = stepped(question, said, models_for, make_env, faithful=False)
    assert (step.refused_rewrite, step.rewritten_query, calls) == ("", said, 2)


def test_a_second_rewrite_is_compared_with_what_was_asked_at_first(
    models_for: MakeModels, make_env: MakeEnv
) -> None:
    """Two steps in one direction, each small, may end far from the question."""
    loose = replace(CLARIFY, name="loose", preserves_meaning=False)
    again = replace(CLARIFY, instruction="Say it again.")

    def answer(model: str, system: str, prompt: str) -> str:
        if system == again.instruction:
            return "What is Chile's capital?"
        return "What is the capital of Chile?" if system else "It is so."

    with SimulatedServer(answer=answer) as server:
        questions = [Question("q", PERU, reference="It is so.")]
        operators = [loose, again]
        models = models_for(server)
        env = make_env(models, questions=questions, operators=operators, max_rewrites=2)
        env.reset(seed=1)
        assert not env.advance(1).info.refused_rewrite
        assert env.advance(2).info.refused_rewrite.startswith("drift ")


class Counting:
    """The packaged embedder, with a count of the texts that it was given."""

    exact_in_batches = True

    def __init__(self) -> None:
        self._embedder = remembering(1)
        self.dimension = self._embedder.dimension
        self.texts: Counter[str] = Counter()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts.update(texts)
        return self._embedder.embed(texts)


def test_the_check_embeds_nothing_that_the_score_would_not(
    models_for: MakeModels, make_env: MakeEnv
) -> None:
    embedded: list[Counter[str]] = []
    for faithful in (True, False):
        counting = Counting()

        def connected(server: SimulatedServer, **options: bool) -> Models:
            return replace(models_for(server, **options), encoder=Encoder(counting))  # noqa: B023

        stepped(*KEPT["the side story left out"], connected, make_env, faithful=faithful)
        embedded.append(counting.texts)
    assert embedded[0] == embedded[1]
    assert set(embedded[0].values()) == {1}


def test_a_run_counts_what_it_refused_and_says_why(tmp_path: Path) -> None:
    def answer(model: str, system: str, prompt: str) -> str:
        return "How do whales sleep at night?" if system else "It is so."

    with SimulatedServer(slots=8, answer=answer) as server:
        run = tmp_path / "run"
        flags = ["--only-operators", "clarify,qa", "--dataset", str(FEW_QUESTIONS)]
        assert train(server, run, *flags) == 0
    steps = list(read_transitions(str(run)))
    refused = [step for step in steps if step.refused_rewrite]
    assert refused
    assert {step.operator for step in refused} == {"clarify"}
    assert all("drift" in step.refused_rewrite for step in refused)
    assert json.loads((run / "summary.json").read_text())["refused_rewrites"] == len(refused)
