"""The environments: spaces, rewards, ends, failures, and that batching changes nothing."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as check_gymnasium

from query_mutator.base.errors import ServerUnavailableError
from query_mutator.data import Question
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.group import BatchedQueryMutationEnv
from query_mutator.models.session import Models
from query_mutator.objectives import Score, Term
from query_mutator.operators import shipped_operators
from query_mutator.servers.simulated import Fault, SimulatedServer

MakeModels = Callable[..., Models]
MakeEnv = Callable[..., QueryMutationEnv]
REPHRASE = 1 + [operator.name for operator in shipped_operators()].index("rephrase")


def test_gymnasiums_checker_passes(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*not within the observation space.*infinity.*")
        check_gymnasium(env, skip_render_check=True)


def test_stable_baselines_checker_passes_and_its_ppo_trains(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_checker import check_env

    env = make_env(models_for(server), max_rewrites=2)
    check_env(env)
    PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=1).learn(64)


def test_the_return_is_the_gain_of_the_last_answer_over_the_first(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=3)
    for seed in range(5):
        _, opening = env.reset(seed=seed)
        total, terminated, info = 0.0, False, opening
        for action in (1, 7, 2):
            _, reward, terminated, truncated, info = env.step(action)
            total += reward
            assert not truncated
        assert terminated
        assert total == pytest.approx(info["score"] - opening["score"])
        assert info["episode_return"] == pytest.approx(total)


def test_stop_ends_the_episode_and_keeps_what_there_is(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=3)
    env.reset(seed=3)
    _, first_reward, *_ = env.step(1)
    calls = server.stats.generation_calls
    _, reward, terminated, _, info = env.step(0)
    assert (reward, terminated, info["operator"]) == (0.0, True, "stop")
    assert info["episode_return"] == pytest.approx(first_reward)
    assert server.stats.generation_calls == calls


def test_the_observation_knows_nothing_of_the_reference(
    server: SimulatedServer,
    models_for: MakeModels,
    make_env: MakeEnv,
    train_questions: list[Question],
) -> None:
    other = [
        dataclasses.replace(q, reference="Something else.", key_facts=(("else",),), category="x")
        for q in train_questions
    ]
    models = models_for(server)
    envs = [make_env(models, questions=questions) for questions in (train_questions, other)]
    scores: list[tuple[float, float]] = []
    for seed in range(5):
        first, second = (env.reset(seed=seed) for env in envs)
        assert np.array_equal(first[0], second[0])
        first_step, second_step = (env.step(1) for env in envs)
        assert np.array_equal(first_step[0], second_step[0])
        scores.append((first[1]["score"], second[1]["score"]))
    assert any(one != other for one, other in scores)


def test_drift_is_measured_on_the_question_and_not_on_the_template(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server))
    env.reset(seed=1)
    _, _, _, _, info = env.step(1)
    assert info["rewritten_query"] != info["original_query"]
    assert info["terms"]["drift"]["value"] == 0


def test_a_rewrite_goes_inside_the_template_that_is_there(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=2)
    env.reset(seed=1)
    env.step(1)
    _, _, _, _, info = env.step(REPHRASE)
    assert info["rewritten_query"] == f"Question: {info['rewritten_question']}\nAnswer:"


def test_an_operator_already_tried_is_masked(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=3)
    env.reset(seed=1)
    assert env.action_masks().all()
    env.step(4)
    assert env.action_masks().tolist() == [action != 4 for action in range(env.view.num_actions)]


@pytest.mark.parametrize("failing_model", ["qwen2.5:3b", "llama3.2:3b"])
def test_a_failed_step_is_marked_and_ends_the_episode_without_a_verdict(
    failing_model: str, server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=3)
    before, _ = env.reset(seed=1)
    server.set_faults(Fault("bad_request", model=failing_model))
    observation, reward, terminated, truncated, info = env.step(REPHRASE)
    assert (reward, terminated, truncated, info["failed"]) == (0.0, False, True, True)
    assert "HTTP 400" in info["failure"]
    assert np.array_equal(before, observation)


def test_a_reset_moves_on_to_another_question_when_one_has_no_answer(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server))
    _, first = env.reset(seed=9)
    env.models.client._remembered.clear()
    server.set_faults(Fault("bad_request", times=1))
    _, second = env.reset(seed=9)
    assert second["question_id"] != first["question_id"]
    server.set_faults(Fault("bad_request"))
    with pytest.raises(ServerUnavailableError, match="HTTP 400"):
        env.reset()


def test_a_step_at_an_end_is_followed_by_a_reset_without_a_filler_row(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    models = models_for(server)
    group = BatchedQueryMutationEnv([make_env(models, index=i, num_envs=4) for i in range(4)], 4)
    first, _ = group.batch_reset()
    for _ in range(5):
        seen = group.current()[0].copy()
        steps = group.batch_step([1, 2, 3, 0])
        for index, step in enumerate(steps):
            assert step.terminated
            assert step.final_observation is not None
            assert step.info.operator == ["qa", "one_sentence", "fact_first", "stop"][index]
            assert step.reset_info is not None
            assert step.reset_info["question_id"] != step.info.question_id
            assert not np.array_equal(step.observation, seen[index])
    assert first.shape == (4, group.observation_size)


def run_group(models: Models, make_env: MakeEnv, batch_size: int) -> list[Any]:
    envs = [make_env(models, index=i, num_envs=8, max_rewrites=2, seed=4) for i in range(8)]
    group = BatchedQueryMutationEnv(envs, batch_size)
    group.batch_reset()
    chooser = np.random.default_rng(0)
    history = []
    for _ in range(6):
        actions = chooser.integers(0, group.num_actions, 8).tolist()
        for step in group.batch_step(actions):
            following = step.reset_info and step.reset_info["question_id"]
            seen = (step.observation.tobytes(), step.info.to_json(), following)
            history.append((step.reward, step.terminated, *seen))
    return history


def test_one_call_at_a_time_gives_the_same_transitions_as_eight(
    models_for: MakeModels, make_env: MakeEnv
) -> None:
    histories = []
    for batch_size in (1, 8):
        with SimulatedServer(slots=8, mean_latency_s=0.02, sigma=1.0) as server:
            histories.append(run_group(models_for(server), make_env, batch_size))
            assert server.stats.max_in_flight <= batch_size
            assert (server.stats.max_in_flight > 1) == (batch_size > 1)
    assert histories[0] == histories[1]


def test_a_single_environment_and_a_group_of_one_are_the_same(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    models = models_for(server)
    alone = make_env(models, seed=2)
    group = BatchedQueryMutationEnv([make_env(models, seed=2)], 1)
    first, _ = alone.reset()
    assert np.array_equal(first, group.batch_reset()[0][0])
    for action in (3, 7, 0, 8):
        observation, reward, terminated, *_ = alone.step(action)
        step = group.batch_step([action])[0]
        assert step.reward == reward
        assert np.array_equal(step.final_observation, observation)  # type: ignore[arg-type]
        assert terminated
        alone.reset()


def test_the_questions_are_covered_evenly(
    server: SimulatedServer,
    models_for: MakeModels,
    make_env: MakeEnv,
    train_questions: list[Question],
) -> None:
    models = models_for(server)
    few = train_questions[:12]
    group = BatchedQueryMutationEnv(
        [make_env(models, questions=few, index=i, num_envs=4) for i in range(4)], 4
    )
    seen = [info["question_id"] for info in group.batch_reset()[1]]
    for _ in range(5):
        steps = group.batch_step([0] * 4)
        seen += [step.reset_info["question_id"] for step in steps if step.reset_info]
    assert {seen.count(question.id) for question in few} == {2}


def test_a_saved_environment_goes_on_as_it_would_have(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    models = models_for(server)

    def group() -> BatchedQueryMutationEnv:
        envs = [make_env(models, index=i, num_envs=3, max_rewrites=3) for i in range(3)]
        return BatchedQueryMutationEnv(envs, 3)

    original, copy = group(), group()
    original.batch_reset()
    original.batch_step([1, 7, 8])
    copy.set_state(json.loads(json.dumps(original.get_state())), original.current()[0])
    assert np.array_equal(original.current()[0], copy.current()[0])
    assert np.array_equal(original.current()[1], copy.current()[1])
    for actions in ([7, 2, 0], [8, 3, 1], [2, 2, 2]):
        for left, right in zip(original.batch_step(actions), copy.batch_step(actions), strict=True):
            assert left.reward == right.reward
            assert np.array_equal(left.observation, right.observation)


def test_the_first_answer_is_kept_through_the_rewrites(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=3)
    _, opening = env.reset(seed=1)
    for action in (1, 7):
        env.step(action)
        state = env.get_state()["state"]
        assert state["first_answer"] == opening["answer"]
        assert state["template_text"].replace("{query}", state["current"]) == state["prompt"]


@pytest.mark.parametrize("action", [-1, 10])
def test_an_action_that_does_not_exist_is_refused(
    action: int, server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server))
    env.reset(seed=1)
    with pytest.raises(ValueError, match="there is no action"):
        env.step(action)


def test_answers_at_temperature_0_are_shared_also_where_rewrites_are_sampled(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server, temperature_mutation=0.7))
    env.reset(seed=1)
    env.step(1)
    calls = server.stats.generation_calls
    env.reset(seed=1)
    env.step(1)
    assert server.stats.generation_calls == calls
    for _ in range(2):
        env.reset(seed=1)
        env.step(REPHRASE)
    assert server.stats.calls_by_model["qwen2.5:3b"] == 2


def test_a_users_objective_decides_the_reward(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(
        models_for(server),
        objective=lambda batch: [Score({"length": Term(float(len(a)))}) for a in batch.answers],
    )
    env.reset(seed=1)
    _, reward, _, _, info = env.step(1)
    assert reward == len(info["answer"]) - len(info["previous_answer"])


def test_the_first_call_of_a_step_can_be_known_before_it_is_taken(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    models = models_for(server)
    group = BatchedQueryMutationEnv(
        [make_env(models, max_rewrites=2, index=i, num_envs=3) for i in range(3)]
    )
    group.batch_reset()
    actions = [0, 1, 2]
    for index, action in enumerate(actions):
        group.expect(index, action)
    models.client.wait_for_ahead()
    before = server.stats.generation_calls
    steps = group.batch_step(actions)
    followed = sum(len(step.info.calls) > 1 for step in steps)
    assert server.stats.generation_calls - before <= followed, "only answers to rewrites are left"
    assert before == 6, "three first questions, and a call ahead for each environment"
