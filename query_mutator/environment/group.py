"""Many environments at once, each at its own pace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ppo.steps import ActionMask, EnvStep, Observation, Predictor
from query_mutator.data import Question
from query_mutator.environment.env import Opening, QueryMutationEnv
from query_mutator.environment.scoring import gain_flow, scoring_runner
from query_mutator.environment.transition import Transition
from query_mutator.models.flows import FlowRunner


class BatchedQueryMutationEnv:
    """N environments, of whose model calls up to `batch_size` are under way on each server.

    With None, each server is given as many as it shows that it can serve. `batch_step` waits for
    all environments; `start` and `wait` let each go at its own pace.
    """

    def __init__(self, envs: Sequence[QueryMutationEnv], batch_size: int | None = 8) -> None:
        if not envs:
            raise ValueError("at least one environment is needed")
        if len({(id(env.models), env.objective) for env in envs}) > 1:
            raise ValueError("the environments of a group share their models and objective")
        self.envs = list(envs)
        self.num_envs = len(self.envs)
        self.observation_size = self.envs[0].view.size
        self.num_actions = self.envs[0].view.num_actions
        self._batch_size = batch_size
        self._runner = self._new_runner()
        self._observations = np.zeros((self.num_envs, self.observation_size), np.float32)
        self._masks = np.ones((self.num_envs, self.num_actions), bool)
        self._steps_begun = [0] * self.num_envs

    def batch_reset(self) -> tuple[Observation, list[dict[str, Any]]]:
        """Resets all: a row of observations and an info for each."""
        results: list[Opening] = self._runner.run([env.reset_flow() for env in self.envs])
        for index, (observation, _) in enumerate(results):
            self._see(index, observation, self.envs[index].action_masks())
        return self._observations.copy(), [info for _, info in results]

    def batch_step(self, actions: Sequence[int]) -> list[EnvStep[Transition]]:
        """A step of all: the results in the order of the environments."""
        if len(actions) != self.num_envs:
            raise ValueError(f"{len(actions)} actions for {self.num_envs} environments")
        for index, action in enumerate(actions):
            self.start(index, int(action))
        results: dict[int, EnvStep[Transition]] = {}
        while len(results) < self.num_envs:
            results.update(self.wait())
        return [results[index] for index in range(self.num_envs)]

    def current(self) -> tuple[Observation, ActionMask]:
        """What every environment sees now, and what it may do."""
        return self._observations, self._masks

    def start(self, index: int, action: int) -> None:
        """Begins a step of one environment.

        The one that is furthest behind is served first: so all reach the end of a rollout
        together, and no slot is idle while the last of them catches up.
        """
        flow = self.envs[index].step_and_reset_flow(action)
        self._runner.start(index, flow, progress=self._steps_begun[index])
        self._steps_begun[index] += 1

    def expect(self, index: int, action: int) -> None:
        """Begins on a step that is likely to come, in a slot that would be idle."""
        if (call := self.envs[index].first_call(action)) is not None:
            self._runner.client.fetch_ahead(call, max_workers=self._runner.max_workers)

    def wait(self) -> list[tuple[int, EnvStep[Transition]]]:
        """The steps that have ended since: at least one, if any is under way."""
        ended: list[tuple[int, EnvStep[Transition]]] = self._runner.wait()
        for index, step in ended:
            self._see(index, step.observation, step.action_mask)
        return ended

    def gains(self, questions: Sequence[Question], policy: Predictor) -> list[float | None]:
        """How much better a policy, acting greedily, has questions answered than unchanged.

        None where a call has failed. The environments stay where they are.
        """
        env = self.envs[0]
        flows = [
            gain_flow(
                question,
                policy,
                env.operators,
                env.view,
                env.objective,
                env.models.roles,
                keeper=env.keeper,
            )
            for question in questions
        ]
        gains: list[float | None] = self._new_runner().run(flows)
        return gains

    def get_state(self) -> list[dict[str, Any]]:
        """The state of every environment, between steps."""
        return [env.get_state() for env in self.envs]

    def set_state(self, states: Sequence[Any], observations: Observation) -> None:
        """Takes up what `get_state` gave, and what each saw (`current`), without a call."""
        for index, (env, state) in enumerate(zip(self.envs, states, strict=True)):
            env.set_state(state)
            self._see(index, observations[index], env.action_masks())

    def _new_runner(self) -> FlowRunner[Any]:
        env = self.envs[0]
        return scoring_runner(env.objective, env.models, self._batch_size)

    def _see(self, index: int, observation: Observation, mask: ActionMask) -> None:
        self._observations[index] = observation
        self._masks[index] = mask
