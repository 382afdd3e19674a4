"""Fills a rollout from environments that each go at their own pace."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from ppo.policy import sample_action
from ppo.steps import EnvGroup, EnvStep, Info, Observation, Predictor
from ppo.storage import RolloutStorage


def collect_rollout(
    envs: EnvGroup[Info],
    policy: Predictor,
    storage: RolloutStorage,
    generators: Sequence[np.random.Generator],
    *,
    gamma: float,
    gae_lambda: float,
    more_to_come: bool = False,
    on_step: Callable[[int, int, EnvStep[Info]], None] | None = None,
) -> None:
    """Steps every environment `storage.num_steps` times and computes the advantages.

    No environment waits for another before the end of the rollout. Each has a generator of its
    own, and the policy always looks at all of them at once: the bits of a row of a matrix product
    can change with the number of rows, so what is learned does not depend on who was ready when.
    With `more_to_come`, an environment that is done is told what the policy would do next: after
    the update it will nearly always do just that, so idle slots can begin on it.
    `on_step(step, env, result)` is told of each step as it ends, in the order of arrival.
    """
    steps_done = [0] * envs.num_envs
    final_observations: dict[tuple[int, int], Observation] = {}
    ready = list(range(envs.num_envs))
    while ready:
        observations, masks = envs.current()
        log_probs, values = policy.predict(observations, masks)
        for env in ready:
            action = sample_action(log_probs[env], generators[env])
            storage.record_action(
                steps_done[env],
                env,
                observations[env],
                masks[env],
                action,
                log_probs[env, action],
                values[env],
            )
            envs.start(env, action)
        ready = []
        while not ready and min(steps_done) < storage.num_steps:
            for env, result in envs.wait():
                step = steps_done[env]
                storage.record_result(step, env, result)
                if result.truncated and not result.failed:
                    assert result.final_observation is not None
                    final_observations[step, env] = result.final_observation
                if on_step:
                    on_step(step, env, result)
                steps_done[env] += 1
                if steps_done[env] < storage.num_steps:
                    ready.append(env)
                elif more_to_come:
                    _expect_next_step(envs, policy, env, generators[env])
    _value_final_observations(policy, storage, final_observations)
    _, last_values = policy.predict(*envs.current())
    storage.compute_returns(last_values, gamma=gamma, gae_lambda=gae_lambda)


def _expect_next_step(
    envs: EnvGroup[Info], policy: Predictor, env: int, generator: np.random.Generator
) -> None:
    """The next action by the policy as it is, with the draw that the environment will make."""
    log_probs, _ = policy.predict(*envs.current())
    envs.expect(env, sample_action(log_probs[env], copy.deepcopy(generator)))


def _value_final_observations(
    policy: Predictor,
    storage: RolloutStorage,
    final_observations: dict[tuple[int, int], Observation],
) -> None:
    if not final_observations:
        return
    places = sorted(final_observations)
    observations = np.stack([final_observations[place] for place in places])
    masks = np.ones((len(places), storage.masks.shape[-1]), bool)
    _, values = policy.predict(observations, masks)
    for (step, env), value in zip(places, values, strict=True):
        storage.final_values[step, env] = value
