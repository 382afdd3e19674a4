"""Objectives with calls of their own: what is asked, how it is judged, and what a failure does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from query_mutator.base.errors import ServerUnavailableError, UserError
from query_mutator.data import Question
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.episodes import NO_TEMPLATE, EpisodeState
from query_mutator.environment.group import BatchedQueryMutationEnv
from query_mutator.environment.scoring import score_flow, scoring_runner
from query_mutator.models.calls import Failure
from query_mutator.models.connect import connect
from query_mutator.models.flows import FlowRunner
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models, open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import (
    OBJECTIVES,
    AnsweredQuestion,
    Evidence,
    Objective,
    Score,
    Weights,
    load_objective,
)
from query_mutator.objectives.consistency import variants_of
from query_mutator.objectives.judge import JudgeAgreement, agreement_with_facts
from query_mutator.servers.simulated import Fault, SimulatedServer, default_answer
from tests.conftest import SIMULATED_MODELS
from tests.test_training import train

MakeModels = Callable[..., Models]
MakeEnv = Callable[..., QueryMutationEnv]
JUDGE = "judge:7b"
PERU = Question("peru", "What is the capital of Peru?", "The capital of Peru is Lima.")
STATE = EpisodeState(
    original=PERU.question,
    current="What is Peru's capital?",
    prompt="What is Peru's capital?",
    template=None,
    template_text=NO_TEMPLATE,
    first_answer="It is Cusco.",
    answer="It is Lima.",
    answer_cut=False,
    tried=(1,),
    steps_left=1,
)


def prefers_lima(prompt: str) -> str:
    first, _, second = prompt.partition("Answer A: ")[2].partition("Answer B: ")
    return "A" if "Lima" in first and "Lima" not in second else "B"


@contextmanager
def judged_by(judge: Callable[[str], str]) -> Iterator[tuple[SimulatedServer, Models]]:
    """A server whose judge is scripted; its other models answer every prompt differently."""

    def answer(model: str, system: str, prompt: str) -> str:
        return judge(prompt) if model == JUDGE else default_answer(model, system, prompt)

    with (
        SimulatedServer(models=(*SIMULATED_MODELS.values(), JUDGE), answer=answer) as server,
        open_models(
            ModelSettings(server.url, **SIMULATED_MODELS, judge_model=JUDGE, retries=0)
        ) as models,
    ):
        yield server, models


def score(
    models: Models, objective: Objective, question: Question = PERU, state: EpisodeState = STATE
) -> Score | Failure:
    runner: FlowRunner[Score | Failure] = scoring_runner(objective, models, 1)
    return runner.run([score_flow(question, state, objective, models.roles)])[0]


def prompts(server: SimulatedServer) -> list[str]:
    requests = [request for request in server.stats.last_requests if request.path == "/api/chat"]
    return [request.body["messages"][-1]["content"] for request in requests]


def verdict(
    models: Models, answer: str = STATE.answer, first_answer: str = STATE.first_answer
) -> tuple[float, str]:
    state = replace(STATE, answer=answer, first_answer=first_answer)
    result = score(models, load_objective("judge", Weights()), state=state)
    assert isinstance(result, Score)
    return result.terms["verdict"].value, result.terms["verdict"].why.partition(":")[0]


def test_the_judge_sees_both_orders_and_the_reference() -> None:
    with judged_by(prefers_lima) as (server, models):
        assert verdict(models) == (1.0, "win")
        assert verdict(models, answer="It is Cusco.", first_answer="It is Lima.") == (0.0, "loss")
        first, second = prompts(server)[:2]
    assert first.index("It is Lima.") < first.index("It is Cusco.")
    assert second.index("It is Cusco.") < second.index("It is Lima.")
    assert "Correct answer: The capital of Peru is Lima." in first


def test_equal_pairs_are_judged_once() -> None:
    with judged_by(prefers_lima) as (server, models):
        for _ in range(3):
            verdict(models)
        assert server.stats.calls_by_model[JUDGE] == 2
        models.roles = replace(models.roles, temperature_answer=0.9)
        verdict(models)
        assert server.stats.calls_by_model[JUDGE] == 2


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("A", (0.5, "flip")), ("B", (0.5, "flip")), ("Both are fine", (0.5, "unreadable"))],
)
def test_a_judge_that_looks_at_the_order_alone_decides_nothing(
    reply: str, expected: tuple[float, str]
) -> None:
    with judged_by(lambda prompt: reply) as (_, models):
        assert verdict(models) == expected


def test_the_unchanged_answer_is_worth_half_without_a_call() -> None:
    with judged_by(prefers_lima) as (server, models):
        assert verdict(models, answer=STATE.first_answer) == (0.5, "same")
        assert server.stats.generation_calls == 0


def test_a_question_without_a_reference_can_be_judged() -> None:
    with judged_by(prefers_lima) as (server, models):
        bare = replace(PERU, reference="")
        result = score(models, load_objective("judge", Weights()), bare)
        assert isinstance(result, Score)
        assert result.terms["verdict"].value == 1.0
        assert "Correct answer" not in prompts(server)[0]


def test_long_answers_are_cut_to_what_the_judges_context_holds() -> None:
    with judged_by(prefers_lima) as (server, models):
        verdict(models, answer="Lima " * 5000, first_answer="Cusco " * 5000)
        assert len(prompts(server)[0]) < 3 * models.roles.num_ctx


def test_the_judge_is_the_target_unless_named_and_may_have_a_server_of_its_own() -> None:
    with SimulatedServer() as first, SimulatedServer(models=(JUDGE,)) as second:
        assert connect(ModelSettings(first.url, **SIMULATED_MODELS)).judge_model == "llama3.2:3b"
        with pytest.raises(UserError, match="no model 'judge:7b'") as caught:
            connect(ModelSettings(first.url, **SIMULATED_MODELS, judge_model=JUDGE))
        assert "--judge-model" in str(caught.value)
        with open_models(
            ModelSettings(first.url, judge_server=[second.url], **SIMULATED_MODELS)
        ) as models:
            models.client.run([models.roles.judge_call("A or B?"), models.roles.answer_call("?")])
        assert second.stats.calls_by_model == {JUDGE: 1}
        assert first.stats.calls_by_model == {"llama3.2:3b": 1}


def test_the_judge_follows_the_target_to_its_server() -> None:
    with SimulatedServer() as mutator, SimulatedServer() as target:
        parts: dict[str, Any] = {"mutator_server": [mutator.url], "target_server": [target.url]}
        with open_models(ModelSettings([], **parts, **SIMULATED_MODELS)) as models:
            outcome = models.client.run([models.roles.judge_call("A or B?")])[0]
        assert not outcome.failed
        assert (mutator.stats.generation_calls, target.stats.generation_calls) == (0, 1)


def test_agreement_with_facts_counts_decided_pairs_and_flips() -> None:
    pairs = [
        ("win", 0.0, 1.0),
        ("loss", 1.0, 0.5),
        ("win", 1.0, 0.0),
        ("win", 0.5, 0.5),
        ("flip", 0.0, 1.0),
        ("unreadable", 0.0, 1.0),
        ("same", 0.5, 0.5),
    ]
    found = agreement_with_facts(pairs)
    assert found == JudgeAgreement(judged=6, flips=1, decided=3, agreeing=2)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.flip_share == pytest.approx(1 / 6)
    assert agreement_with_facts([]).agreement is None


def test_variants_differ_from_the_question_and_keep_what_is_within_words() -> None:
    assert variants_of("What's 3.5 at 5:30, e.g. in Rome?") == {
        "no capitals or punctuation": "whats 3.5 at 5:30 e.g in rome",
        "polite frame": "Hi, quick question: What's 3.5 at 5:30, e.g. in Rome? Thanks!",
        "one typo": "Waht's 3.5 at 5:30, e.g. in Rome?",
    }
    assert list(variants_of("2+2")) == ["polite frame"]


def test_consistency_asks_for_the_variants_in_the_template_and_names_what_moved_it() -> None:
    def answer(model: str, system: str, prompt: str) -> str:
        return "I can't help with that." if prompt.islower() else "It is Lima."

    template = "question: {query}\nanswer:"
    state = replace(STATE, template_text=template)
    with SimulatedServer(answer=answer) as server:
        with open_models(ModelSettings(server.url, **SIMULATED_MODELS)) as models:
            result = score(models, load_objective("consistency", Weights()), state=state)
        wanted = [template.replace("{query}", text) for text in variants_of(STATE.current).values()]
        assert prompts(server) == wanted
    assert isinstance(result, Score)
    stable, willing = result.terms["stable"], result.terms["willing"]
    assert stable.why.startswith("moved most by 'no capitals or punctuation'")
    assert 2 / 3 <= stable.value < 0.95
    assert willing.value == 0.75
    assert willing.why == "1 of 4 refused, opening: 'i cannot help'"
    assert result.terms["drift"].weight < 0


def test_to_refuse_always_is_no_consistency() -> None:
    refusal = "I can't help with that."
    with (
        SimulatedServer(answer=lambda model, system, prompt: refusal) as server,
        open_models(ModelSettings(server.url, **SIMULATED_MODELS)) as models,
    ):
        objective = load_objective("consistency", Weights())
        result = score(models, objective, state=replace(STATE, answer=refusal))
    assert isinstance(result, Score)
    assert result.terms["stable"].value == pytest.approx(1.0, abs=1e-5)
    assert result.terms["willing"].value == 0.0


def test_a_failing_judge_masks_the_step(make_env: MakeEnv) -> None:
    with judged_by(prefers_lima) as (server, models):
        env = make_env(models, objective=load_objective("judge", Weights()), max_rewrites=3)
        before, opening = env.reset(seed=1)
        assert opening["terms"]["verdict"]["value"] == 0.5
        server.set_faults(Fault("bad_request", model=JUDGE))
        observation, reward, terminated, truncated, info = env.step(1)
    assert info["answer"] != info["previous_answer"], "else the judge is not asked"
    assert (reward, terminated, truncated, info["failed"]) == (0.0, False, True, True)
    assert info["failure"].startswith("judge: ")
    assert "HTTP 400" in info["failure"]
    assert np.array_equal(before, observation)


def test_a_failed_variant_at_a_reset_moves_on_to_the_next_question(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), objective=load_objective("consistency", Weights()))
    _, first = env.reset(seed=9)
    env.models.client._remembered.clear()
    server.set_faults(Fault("bad_request", calls=[2]))
    _, second = env.reset(seed=9)
    assert second["question_id"] != first["question_id"]


def test_a_reset_gives_up_where_no_first_answer_can_be_scored(make_env: MakeEnv) -> None:
    async def gather(asked: AnsweredQuestion, roles: Roles) -> Evidence:
        outcome = await roles.judge_call(asked.question)
        assert outcome.failure is not None
        return Evidence(failure=f"no verdict: {outcome.failure.reason}")

    with judged_by(prefers_lima) as (server, models):
        env = make_env(models, objective=Objective(lambda batch: [], gather))
        # A model that has never answered ends a run by another way.
        models.client.run([models.roles.judge_call("A or B?")])
        server.set_faults(Fault("bad_request", model=JUDGE))
        with pytest.raises(ServerUnavailableError, match="no verdict"):
            env.reset(seed=1)


def test_a_saved_state_is_taken_up_without_asking_the_judge_again(make_env: MakeEnv) -> None:
    with judged_by(prefers_lima) as (server, models):
        objective = load_objective("judge", Weights())
        group = BatchedQueryMutationEnv([make_env(models, objective=objective, max_rewrites=3)])
        group.batch_reset()
        group.batch_step([1])
        saved, seen = group.get_state(), group.current()[0].copy()
        group.batch_step([2])
        models.client._remembered.clear()
        server.set_faults(Fault("bad_request", model=JUDGE))
        group.set_state(saved, seen)
        assert group.get_state() == saved


@pytest.mark.parametrize("name", ["consistency", "judge"])
def test_the_order_of_arrival_changes_no_score(
    name: str, models_for: MakeModels, make_env: MakeEnv
) -> None:
    histories = []
    for batch_size in (1, 8):
        with SimulatedServer(slots=8, mean_latency_s=0.005, sigma=1.0) as server:
            models, objective = models_for(server), load_objective(name, Weights())
            envs = [make_env(models, objective=objective, index=i, num_envs=6) for i in range(6)]
            group = BatchedQueryMutationEnv(envs, batch_size)
            group.batch_reset()
            steps = [step for action in (1, 7) for step in group.batch_step([action] * 6)]
            histories.append([(step.reward, step.info.terms) for step in steps])
    assert histories[0] == histories[1]


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_a_training_run_with_each_objective_ends_well(
    name: str, server: SimulatedServer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert train(server, run, "--objective", name, "--num-env-steps", "16") == 0
    lines = [json.loads(line) for line in (run / "transitions.jsonl").read_text().splitlines()]
    assert len(lines) == 16
    assert not any(line["failed"] for line in lines)
    assert all(term["why"] for line in lines for term in line["terms"].values())


def test_a_users_objective_may_make_calls(
    tmp_path: Path, server: SimulatedServer, models_for: MakeModels
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from query_mutator.objectives import Evidence, Objective\n"
        "def ask(asked, roles):\n"
        "    outcome = yield roles.answer_call(asked.prompt_for('Why?'))\n"
        "    return Evidence(len(outcome.text), outcome.failed and outcome.failure.reason or '')\n"
        "mine = Objective(lambda batch: batch.evidence, ask, needs_reference=True)\n"
        "def broken(asked, roles):\n"
        "    yield 'a call'\n"
        "wrong = Objective(lambda batch: batch.evidence, broken)\n"
        "nothing = Objective(lambda batch: batch.evidence, lambda asked, roles: None)\n"
    )
    models = models_for(server)
    objective = load_objective(f"{file}:mine", Weights())
    assert objective.needs_reference
    result = score(models, objective)
    assert isinstance(result, Score)
    assert result.total > 0
    for name, message in (("wrong", "may ask for a Call"), ("nothing", "failed: AttributeError")):
        with pytest.raises(UserError, match=message):
            score(models, load_objective(f"{file}:{name}", Weights()))
