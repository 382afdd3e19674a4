"""The policy and the algorithm on tasks with a known answer."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from ppo import PPO, ActorCritic, PPOSettings, RolloutStorage, collect_rollout
from ppo.cartpole import build_parser, evaluate, train
from ppo.gym_group import GymGroup
from ppo.policy import sample_action
from ppo.steps import EnvStep
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.group import BatchedQueryMutationEnv
from query_mutator.environment.transition import Transition
from query_mutator.models.session import Models
from query_mutator.operators import select_operators, shipped_operators
from query_mutator.servers.simulated import Fault, SimulatedServer
from tests.nightly import seeds


class IdentityEnv(gym.Env[np.ndarray, np.int64]):
    """The action wanted is the one shown; 100 steps an episode."""

    def __init__(self, size: int = 4) -> None:
        self.size = size
        self.observation_space = gym.spaces.Box(0, 1, (size,), np.float32)
        self.action_space = gym.spaces.Discrete(size)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.left = 100
        return self._show(), {}

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward = float(action == self.wanted)
        self.left -= 1
        return self._show(), reward, False, self.left == 0, {}

    def _show(self) -> np.ndarray:
        self.wanted = int(self.np_random.integers(self.size))
        return np.eye(self.size, dtype=np.float32)[self.wanted]


MASKS = np.array(
    [
        [True, True, True, True, False],
        [True, False, True, False, False],
        [False, True, True, True, False],
        [False, False, True, False, False],
    ]
)


def masked_rollout() -> RolloutStorage:
    """One step of four environments, each with its own mask; each takes action 2."""
    storage = RolloutStorage(1, 4, 3, 5)
    for env, mask in enumerate(MASKS):
        observation = np.eye(3, dtype=np.float32)[env % 3]
        storage.record_action(0, env, observation, mask, 2, -log(mask.sum()), 0.0)
        result = EnvStep(observation, mask, float(env), terminated=True, truncated=False, info=None)
        storage.record_result(0, env, result)
    storage.compute_returns(np.zeros(4), gamma=1.0, gae_lambda=1.0)
    return storage


def uniform_policy(hidden_size: int) -> ActorCritic:
    policy = ActorCritic(3, 5, hidden_size)
    for parameter in policy.actor.parameters():
        torch.nn.init.zeros_(parameter)
    return policy


def test_each_row_of_a_batch_has_its_own_mask() -> None:
    torch.manual_seed(0)
    policy = ActorCritic(3, 5)
    observations = torch.randn(4, 3)
    with torch.no_grad():
        log_probs, _ = policy(observations, torch.from_numpy(MASKS))
        probabilities = log_probs.exp().numpy()
        assert (probabilities[~MASKS] == 0).all()
        assert probabilities.sum(1) == pytest.approx(np.ones(4))
        unmasked = policy.actor(observations).exp().numpy() * MASKS
    assert probabilities == pytest.approx(unmasked / unmasked.sum(1, keepdims=True), abs=1e-6)


@pytest.mark.parametrize("hidden_size", [0, 16])
def test_masked_actions_have_no_share_in_the_entropy_or_the_update(hidden_size: int) -> None:
    policy = uniform_policy(hidden_size)
    settings = PPOSettings(ppo_epoch=1, num_mini_batch=1, entropy_coef=0.1)
    stats = PPO(policy, settings).update(masked_rollout(), np.random.default_rng(0))
    assert stats.entropy == pytest.approx((log(4) + log(2) + log(3) + log(1)) / 4)
    assert stats.approx_kl == pytest.approx(0, abs=1e-6)
    *_, bias = policy.actor.parameters()
    assert bias[2] != 0
    assert bias[4] == 0, "an action that was masked everywhere has no gradient"


def test_without_hidden_layers_the_policy_is_linear_nearly_uniform_and_values_start_near_0() -> (
    None
):
    policy = ActorCritic(10, 4, hidden_size=0)
    assert sum(parameter.numel() for parameter in policy.parameters()) == 10 * 4 + 4 + 10 + 1
    left, right = torch.randn(2, 50, 10)
    masks = torch.ones(50, 4, dtype=torch.bool)
    with torch.no_grad():
        for network in (policy.actor, policy.critic):
            assert torch.allclose(network(left + right), network(left) + network(right), atol=1e-5)
        log_probs, values = policy(left, masks)
    assert log_probs.exp().min() > 0.2
    assert values.abs().max() < 0.1


def test_a_failed_step_is_masked_ends_its_episode_and_the_next_begins(
    server: SimulatedServer,
    models_for: Callable[..., Models],
    make_env: Callable[..., QueryMutationEnv],
) -> None:
    operators = select_operators(shipped_operators(), ["rephrase", "shorten", "clean_up"])
    env = make_env(models_for(server), operators=operators, max_rewrites=3)
    group = BatchedQueryMutationEnv([env], 1)
    group.batch_reset()
    policy = ActorCritic(group.observation_size, group.num_actions, hidden_size=0)
    *_, bias = policy.actor.parameters()
    torch.nn.init.constant_(bias[:1], -50.0)  # it never stops by itself
    storage = RolloutStorage(5, 1, group.observation_size, group.num_actions)
    results: list[EnvStep[Transition]] = []

    def on_step(step: int, env: int, result: EnvStep[Transition]) -> None:
        results.append(result)
        if step == 0:
            server.set_faults(Fault("bad_request", model="qwen2.5:3b", times=1))

    generators = [np.random.default_rng(0)]
    collect_rollout(
        group, policy, storage, generators, gamma=0.9, gae_lambda=0.8, on_step=on_step
    )  # fmt: skip
    assert [result.failed for result in results] == [False, True, False, False, False]
    assert storage.valid[:, 0].tolist() == [True, False, True, True, True]
    assert storage.truncated[:, 0].tolist() == [False, True, False, False, False]
    assert storage.terminated[:, 0].tolist() == [False, False, False, False, True]
    episodes = [result.info.question_id for result in results]
    assert episodes[0] == episodes[1] != episodes[2] == episodes[3] == episodes[4]
    allowed = storage.masks[:, 0].sum(1).tolist()
    assert allowed == [4, 3, 4, 3, 2], "the new episode may try every operator again"
    values = storage.values[:, 0]
    first = storage.rewards[0, 0] + 0.9 * values[1] - values[0]
    assert storage.advantages[:2, 0] == pytest.approx([first, 0.0])
    assert len(storage.training_rows()) == 4


def test_sampling_follows_the_probabilities_and_only_the_given_generator() -> None:
    log_probs = np.log(np.array([0.2, 1e-300, 0.5, 0.3]))
    draws = [sample_action(log_probs, np.random.default_rng(seed)) for seed in range(4000)]
    shares = np.bincount(draws, minlength=4) / len(draws)
    assert shares == pytest.approx([0.2, 0.0, 0.5, 0.3], abs=0.03)
    again = [sample_action(log_probs, np.random.default_rng(seed)) for seed in range(50)]
    assert again == draws[:50]


def test_the_first_policy_is_nearly_uniform() -> None:
    log_probs, _ = ActorCritic(10, 4)(torch.randn(100, 10), torch.ones(100, 4, dtype=torch.bool))
    assert log_probs.exp().min() > 0.2


def test_two_equal_runs_give_the_same_weights() -> None:
    weights = [
        torch.cat([p.detach().flatten() for p in train(3, 1024).parameters()]) for _ in range(2)
    ]
    assert torch.equal(weights[0], weights[1])


def test_the_stored_log_prob_is_the_one_the_policy_acted_with() -> None:
    group = GymGroup(IdentityEnv, 2, seed=0)
    policy = ActorCritic(4, 4)
    storage = RolloutStorage(8, 2, 4, 4)
    generators = [np.random.default_rng(i) for i in range(2)]
    collect_rollout(group, policy, storage, generators, gamma=0.9, gae_lambda=0.9)
    log_probs, values = policy.predict(
        storage.observations.reshape(16, 4), storage.masks.reshape(16, 4)
    )
    chosen = log_probs[np.arange(16), storage.actions.reshape(16)]
    assert chosen == pytest.approx(storage.log_probs.reshape(16), abs=1e-6)
    assert values == pytest.approx(storage.values.reshape(16), abs=1e-6)


def test_a_truncated_episode_is_valued_at_its_final_observation() -> None:
    group = GymGroup(IdentityEnv, 1, seed=0)
    policy = ActorCritic(4, 4)
    storage = RolloutStorage(120, 1, 4, 4)
    seen: dict[int, Any] = {}
    collect_rollout(
        group, policy, storage, [np.random.default_rng(0)], gamma=0.9, gae_lambda=0.9,
        on_step=lambda step, env, result: seen.update({step: result.final_observation})
        if result.truncated else None,
    )  # fmt: skip
    assert list(seen) == [99]
    _, value = policy.predict(seen[99][None], np.ones((1, 4), bool))
    assert storage.final_values[99, 0] == pytest.approx(value[0])


def test_identity_is_learned_in_1200_steps() -> None:
    settings = PPOSettings(lr=2e-3, gamma=0.4, ppo_epoch=8, num_mini_batch=4, entropy_coef=0.0)
    for seed in (1, 2, 3):
        policy = train(seed, 1200, make=IdentityEnv, settings=settings, num_envs=2, num_steps=60)
        assert evaluate(policy, IdentityEnv, 1) >= 90


def test_a_task_with_masked_actions_is_learned() -> None:
    """80 actions of which 60 are masked: the right one is among those left."""

    class Masked(GymGroup):
        def current(self) -> tuple[np.ndarray, np.ndarray]:
            observations, masks = super().current()
            masks[:, 20:] = False
            return observations, masks

    torch.manual_seed(0)
    group = Masked(lambda: IdentityEnv(80), 4, seed=0)
    for env in group.envs:
        env.unwrapped.size = 20  # type: ignore[attr-defined]
        env.unwrapped._show = lambda env=env.unwrapped: _show_padded(env)  # type: ignore
        env.reset()
    group._observations = np.stack([_padded(env.unwrapped.wanted) for env in group.envs])  # type: ignore
    settings = PPOSettings(lr=3e-3, gamma=0.0, ppo_epoch=10, num_mini_batch=4, entropy_coef=0.0)
    policy = ActorCritic(80, 80)
    algorithm = PPO(policy, settings)
    generators = [np.random.default_rng(i) for i in range(4)]
    for _ in range(20):
        storage = RolloutStorage(62, 4, 80, 80)
        collect_rollout(group, policy, storage, generators, gamma=0.0, gae_lambda=0.95)
        assert (storage.actions < 20).all(), "a masked action is never taken"
        algorithm.update(storage, np.random.default_rng(0))
    masks = np.zeros((20, 80), bool)
    masks[:, :20] = True
    log_probs, _ = policy.predict(np.stack([_padded(n) for n in range(20)]), masks)
    assert (log_probs.argmax(1) == np.arange(20)).mean() >= 0.9


def _padded(wanted: int) -> np.ndarray:
    return np.eye(80, dtype=np.float32)[wanted]


def _show_padded(env: Any) -> np.ndarray:
    env.wanted = int(env.np_random.integers(20))
    return _padded(env.wanted)


def test_cartpoles_number_of_steps_parses_as_the_trainers() -> None:
    assert build_parser().parse_args(["--num-env-steps", "1e3"]).num_env_steps == 1000


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, at_night=3))
def test_cartpole_is_at_475_in_the_mean_of_its_last_evaluations_within_25000_steps(
    seed: int,
) -> None:
    scores: list[float] = []

    def on_update(steps: int, policy: ActorCritic) -> bool:
        if steps % 2048 == 0 and steps > 0.7 * 25_000:
            scores.append(evaluate(policy, lambda: gym.make("CartPole-v1"), 20))
        return False

    train(seed, 25_000, on_update=on_update)
    assert len(scores) == 4
    assert np.mean(scores) >= 475, scores
