"""`python -m ppo.cartpole`: the algorithm on CartPole-v1, with greedy evaluations as it learns."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

import gymnasium as gym
import numpy as np
import torch

from ppo.algorithm import PPO
from ppo.collector import collect_rollout
from ppo.gym_group import GymGroup
from ppo.policy import ActorCritic
from ppo.settings import PPOSettings
from ppo.storage import RolloutStorage
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, exit_code

SETTINGS = PPOSettings(
    lr=1e-3, gamma=0.99, gae_lambda=0.95, ppo_epoch=10, num_mini_batch=4, entropy_coef=0.0
)
NUM_ENVS = 8
NUM_STEPS = 32
EVALUATION_EPISODES = 20
EVALUATION_INTERVAL = 2048


def train(
    seed: int,
    num_env_steps: int,
    *,
    make: Callable[[], gym.Env] = lambda: gym.make("CartPole-v1"),
    settings: PPOSettings = SETTINGS,
    num_envs: int = NUM_ENVS,
    num_steps: int = NUM_STEPS,
    on_update: Callable[[int, ActorCritic], bool] | None = None,
) -> ActorCritic:
    """A policy trained on a gymnasium task; `on_update(steps, policy)` may end it by True."""
    torch.manual_seed(seed)
    group = GymGroup(make, num_envs, seed=seed)
    policy = ActorCritic(group.observation_size, group.num_actions)
    algorithm = PPO(policy, settings)
    generators = [np.random.default_rng([seed, index]) for index in range(num_envs)]
    shuffle = np.random.default_rng([seed, num_envs])
    updates = num_env_steps // (num_envs * num_steps)
    for update in range(updates):
        algorithm.decay_lr(1 - update / updates)
        storage = RolloutStorage(num_steps, num_envs, group.observation_size, group.num_actions)
        collect_rollout(
            group,
            policy,
            storage,
            generators,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
        )
        algorithm.update(storage, shuffle)
        if on_update and on_update((update + 1) * num_envs * num_steps, policy):
            break
    return policy


def evaluate(
    policy: ActorCritic, make: Callable[[], gym.Env], episodes: int, *, seed: int = 10_000
) -> float:
    """The mean return of the greedy policy."""
    env = make()
    returns = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        total, done = 0.0, False
        while not done:
            row = np.asarray(observation, np.float32).reshape(1, -1)
            log_probs, _ = policy.predict(row, np.ones((1, policy.num_actions), bool))
            observation, reward, terminated, truncated, _ = env.step(int(log_probs[0].argmax()))
            total += float(reward)
            done = terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(prog="python -m ppo.cartpole", description=__doc__)
    parser.add_argument("--seeds", type=at_least(0), nargs="+", default=[1, 2, 3])
    parser.add_argument("--num-env-steps", type=at_least(NUM_ENVS * NUM_STEPS), default=25_000)
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    args = build_parser().parse_args(argv)
    torch.set_num_threads(1)
    rollout = NUM_ENVS * NUM_STEPS
    interval = min(EVALUATION_INTERVAL, args.num_env_steps // rollout * rollout)

    def report(seed: int, reached: list[int], steps: int, policy: ActorCritic) -> bool:
        if steps % interval == 0:
            score = evaluate(policy, lambda: gym.make("CartPole-v1"), EVALUATION_EPISODES)
            print(f"seed {seed}  {steps:6d} steps  greedy return {score:.1f}")
            if score >= 475:
                reached.append(steps)
        return False

    for seed in args.seeds:
        reached: list[int] = []
        train(seed, args.num_env_steps, on_update=partial(report, seed, reached))
        first = f"after {reached[0]} steps" if reached else "not reached"
        print(f"seed {seed}: 475 {first}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(run))
