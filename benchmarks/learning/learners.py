"""Ways to learn which action is best where, each with the same number of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil, gcd, inf
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch

from benchmarks.learning.tasks import Judged, Task
from ppo import PPO, ActorCritic, AllActionPPO, Chooser, RolloutStorage, collect_rollout
from ppo.gym_group import GymGroup
from ppo.settings import PPOSettings
from ppo.steps import EnvGroup, Predictor
from query_mutator.base.errors import UserError
from query_mutator.runs.settings import Settings
from query_mutator.training.trainer import ppo_settings

ALL_ACTIONS_LR = 0.05
Values = dict[int, Judged]
"""What the greedy choice is worth on held-out contexts, after so many steps.

Each budget is so many steps of every environment (`check_budgets`), so that all learners are
measured at the same step.
"""
Learner = Callable[[Task, int, Sequence[int]], Values]


def steps_per_update() -> int:
    """Steps of a rollout; PPO is better or worse only after whole ones."""
    settings = Settings()
    return settings.num_processes * settings.num_steps


def check_budgets(budgets: Sequence[int]) -> None:
    """Refuses budgets that are no whole number of steps of each environment of PPO."""
    envs = Settings().num_processes
    for budget in budgets:
        if budget % envs:
            raise UserError(
                f"--budgets {budget}: PPO steps {envs} environments at a time; take a multiple "
                f"of {envs}"
            )


class TaskEnv(gym.Env[npt.NDArray[np.float32], np.int64]):
    """Episodes of one step: a training context, drawn in shuffled passes through all of them.

    The order and the noise depend on `seed`, `index` and `num_envs` alone: not on the actions, nor
    on who resets it with which seed of its own.
    """

    def __init__(self, task: Task, seed: int, index: int = 0, num_envs: int = 1) -> None:
        size = task.observations.shape[1]
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (size,), np.float32)
        self.action_space = gym.spaces.Discrete(task.num_actions)
        self._task = task
        self._generator = np.random.default_rng([seed, 3, index])
        self._order: list[int] = []
        self._seed, self._turn, self._num_envs = seed, index, num_envs

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._row = self._in_turn() if self._task.in_turns else self._in_own_order()
        return self._task.observations[self._row], {}

    def _in_turn(self) -> int:
        """The next context of an order that all environments of a seed go through together."""
        epoch, place = divmod(self._turn, len(self._task.train))
        self._turn += self._num_envs
        order = np.random.default_rng([self._seed, 6, epoch]).permutation(self._task.train)
        return int(order[place])

    def _in_own_order(self) -> int:
        if not self._order:
            self._order = list(self._generator.permutation(self._task.train))
        return int(self._order.pop())

    def step(
        self, action: np.int64 | int
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        noise = self._task.noise * self._generator.standard_normal()
        reward = float(self._task.worth[self._row, int(action)] + (noise if action else 0.0))
        return self._task.observations[self._row], reward, True, False, {}


Made = tuple[ActorCritic, PPO] | tuple[Chooser, AllActionPPO]
"""A policy and what improves it."""


def with_network(group: EnvGroup, rollout_rows: int) -> Made:
    """The product's PPO with its default settings."""
    settings = Settings()
    policy = ActorCritic(group.observation_size, group.num_actions, settings.hidden_size)
    return policy, PPO(policy, ppo_settings(settings), rollout_rows=rollout_rows)


def with_worth(group: EnvGroup, rollout_rows: int) -> Made:
    """PPO over all actions, with a regression for what each is worth."""
    policy = Chooser(group.observation_size, group.num_actions)
    return policy, AllActionPPO(policy, PPOSettings(lr=ALL_ACTIONS_LR))


def all_actions(task: Task, seed: int, budgets: Sequence[int]) -> Values:
    """PPO over all actions, driven as the trainer drives its own."""
    return ours(task, seed, budgets, make=with_worth)


def ours(
    task: Task,
    seed: int,
    budgets: Sequence[int],
    make: Callable[[EnvGroup, int], Made] = with_network,
) -> Values:
    """The product's PPO with its default settings, driven as the trainer drives it."""
    values: Values = {}
    for of_one_run in runs_needed(budgets):
        envs = Settings().num_processes
        group = GymGroup(_makes(task, seed, envs), envs, seed=seed)
        steps = 0
        for policy, storage in learning(group, envs, seed, max(of_one_run), make):
            steps += storage.valid.size
            if steps in of_one_run:
                values[steps] = greedy_value(task, policy)
    return {budget: values[budget] for budget in budgets}


def runs_needed(budgets: Sequence[int]) -> list[list[int]]:
    """The budgets that are seen in one run: of whole updates; any other ends with a short one."""
    whole = [budget for budget in budgets if budget % steps_per_update() == 0]
    others = [[budget] for budget in budgets if budget not in whole]
    return [*others, whole] if whole else others


def _makes(task: Task, seed: int, envs: int) -> Callable[[], TaskEnv]:
    indices = iter(range(envs))
    return lambda: TaskEnv(task, seed, next(indices), envs)


def learning(
    group: EnvGroup,
    envs: int,
    seed: int,
    steps: int | None = None,
    make: Callable[[EnvGroup, int], Made] = with_network,
) -> Iterator[tuple[ActorCritic | Chooser, RolloutStorage]]:
    """After each update of PPO, the policy and what it has just learned from.

    After so many `steps` it ends, with a short update where they are no whole number of them.
    """
    settings = Settings()
    left = inf if steps is None else steps
    torch.manual_seed(seed)
    policy, algorithm = make(group, envs * settings.num_steps)
    generators = [np.random.default_rng([seed, 1, index]) for index in range(envs)]
    shuffle = np.random.default_rng([seed, 2])
    while left > 0:
        num_steps = ceil(min(settings.num_steps, left / envs))
        left -= num_steps * envs
        storage = RolloutStorage(num_steps, envs, group.observation_size, group.num_actions)
        collect_rollout(
            group,
            policy,
            storage,
            generators,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
        )
        algorithm.update(storage, shuffle)
        yield policy, storage


def greedy_value(task: Task, policy: Predictor) -> Judged:
    """What the policy's most probable actions are worth on the held-out contexts."""
    rows = task.observations[task.heldout]
    log_probs, _ = policy.predict(rows, np.ones((len(rows), task.num_actions), bool))
    return task.judged(log_probs.argmax(1))


def sb3(task: Task, seed: int, budgets: Sequence[int], **changes: Any) -> Values:
    """Stable-Baselines3's PPO on the same environments, with rollouts of the same size.

    Its own default of 2,048 steps a rollout would see one update within the largest budget. Its
    rollouts are all of one size: to end at a budget of no whole updates they are shorter.
    """
    values: Values = {}
    for of_one_run in runs_needed(budgets):
        values |= _sb3_run(task, seed, of_one_run, **changes)
    return {budget: values[budget] for budget in budgets}


def _sb3_run(task: Task, seed: int, budgets: Sequence[int], **changes: Any) -> Values:
    from stable_baselines3 import PPO as SB3PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    values: Values = {}

    class Measure(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_start(self) -> None:
            if self.num_timesteps in budgets:
                rows = task.observations[task.heldout]
                values[self.num_timesteps] = task.judged(
                    self.model.predict(rows, deterministic=True)[0]
                )

        def _on_training_end(self) -> None:
            self._on_rollout_start()

    ours = Settings()
    count = ours.num_processes
    envs = DummyVecEnv([partial(TaskEnv, task, seed, index, count) for index in range(count)])
    options = {
        "n_steps": gcd(ours.num_steps, *(budget // count for budget in budgets)),
        "batch_size": steps_per_update() // ours.num_mini_batch,
        "gamma": ours.gamma,
        **changes,
    }
    model = SB3PPO("MlpPolicy", envs, seed=seed, device="cpu", **options)
    model.learn(max(budgets), callback=Measure())
    return values


def sb3_tuned(task: Task, seed: int, budgets: Sequence[int]) -> Values:
    """The same with our learning rate, epochs, entropy bonus and linear networks."""
    ours = Settings()
    return sb3(
        task,
        seed,
        budgets,
        learning_rate=ours.lr,
        n_epochs=ours.ppo_epoch,
        ent_coef=ours.entropy_coef,
        policy_kwargs={"net_arch": []},
    )


def random(task: Task, seed: int, budgets: Sequence[int]) -> Values:
    """Actions at random: 0 by definition."""
    return dict.fromkeys(budgets, Judged(task.random_value, 1 / task.num_actions))


def bandit(
    task: Task,
    seed: int,
    budgets: Sequence[int],
    choose: Callable[[npt.NDArray[np.float32]], int],
    learn: Callable[[npt.NDArray[np.float32], int, float], None],
    greedy: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int64]],
) -> Values:
    """A learner that learns after every step."""
    env = TaskEnv(task, seed)
    observation, _ = env.reset()
    values: Values = {}
    for step in range(1, max(budgets) + 1):
        action = choose(observation)
        _, reward, *_ = env.step(action)
        learn(observation, action, reward)
        observation, _ = env.reset()
        if step in budgets:
            values[step] = task.judged(greedy(task.observations[task.heldout]))
    return values


def ucb(task: Task, seed: int, budgets: Sequence[int], exploration: float = 0.3) -> Values:
    """UCB1 without context: one action for all questions."""
    sums, counts = np.zeros(task.num_actions), np.zeros(task.num_actions)

    def choose(_: npt.NDArray[np.float32]) -> int:
        if (counts == 0).any():
            return int(np.flatnonzero(counts == 0)[0])
        bound = exploration * np.sqrt(2 * np.log(counts.sum()) / counts)
        return int((sums / counts + bound).argmax())

    def learn(_: npt.NDArray[np.float32], action: int, reward: float) -> None:
        sums[action] += reward
        counts[action] += 1

    def greedy(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        return np.full(len(rows), (sums / np.maximum(counts, 1)).argmax())

    return bandit(task, seed, budgets, choose, learn, greedy)


def linucb(
    task: Task, seed: int, budgets: Sequence[int], alpha: float = 0.3, ridge: float = 1.0
) -> Values:
    """LinUCB: a ridge regression for each action, with a bonus for what is little known."""
    size = task.observations.shape[1] + 1
    inverses = np.stack([np.eye(size) / ridge] * task.num_actions)
    sums = np.zeros((task.num_actions, size))

    def extended(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        return np.concatenate([rows, np.ones((*rows.shape[:-1], 1))], axis=-1)

    def choose(row: npt.NDArray[np.float32]) -> int:
        x = extended(row)
        reach = inverses @ x
        means = np.einsum("as,as->a", reach, sums)
        return int((means + alpha * np.sqrt(reach @ x)).argmax())

    def learn(row: npt.NDArray[np.float32], action: int, reward: float) -> None:
        x = extended(row)
        reach = inverses[action] @ x
        inverses[action] -= np.outer(reach, reach) / (1 + x @ reach)
        sums[action] += reward * x

    def greedy(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        weights = np.einsum("ast,at->as", inverses, sums)
        return np.asarray((extended(rows) @ weights.T).argmax(1))

    return bandit(task, seed, budgets, choose, learn, greedy)


LEARNERS: dict[str, Learner] = {
    "ours": ours,
    "PPO, all actions": all_actions,
    "SB3 PPO": sb3,
    "SB3 PPO, our numbers": sb3_tuned,
    "UCB": ucb,
    "LinUCB": linucb,
    "random": random,
}
