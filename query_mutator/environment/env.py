"""Environments: one question and up to K rewrites, alone or many at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np

from ppo.steps import ActionMask, EnvStep, Observation
from query_mutator.base.errors import ServerUnavailableError
from query_mutator.data import Question
from query_mutator.environment.asking import CallCost, TargetAnswer
from query_mutator.environment.episodes import (
    STOP_ACTION,
    EpisodeState,
    EpisodeView,
    Rewrite,
    opening_flow,
    rewrite_flow,
)
from query_mutator.environment.saved import SavedEpisode, saved_episode
from query_mutator.environment.scoring import flow_handlers, score_flow
from query_mutator.models.calls import Call
from query_mutator.models.session import Models
from query_mutator.objectives import Batch, Objective, Score, as_objective
from query_mutator.operators import Operator

MOST_UNSCORED_OPENINGS = 20
"""So many questions in a row whose first answer could not be scored end the run."""


class QueryMutationEnv(gym.Env[Observation, np.int64]):
    """An episode is one question and up to `max_rewrites` rewrites; action 0 stops.

    The reward is the change of the score from the previous answer to this one, so the return of
    an episode is how much better its last answer is than the answer to the question unchanged.
    Environments that share `seed` and differ in `index` go through the questions together.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's own convention

    def __init__(
        self,
        questions: Sequence[Question],
        operators: Sequence[Operator],
        objective: Objective | Callable[[Batch], Sequence[Score]],
        models: Models,
        *,
        max_rewrites: int = 1,
        seed: int = 0,
        index: int = 0,
        num_envs: int = 1,
    ) -> None:
        self.questions = list(questions)
        self.operators = list(operators)
        self.objective = as_objective(objective)
        self.models = models
        self.view = EpisodeView(len(self.operators), max_rewrites)
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (self.view.size,), np.float32)
        self.action_space = gym.spaces.Discrete(self.view.num_actions)
        self._index, self._num_envs = index, num_envs
        self._seed = seed
        self._episode = -1
        self._np_random = np.random.default_rng([seed, index])
        self._question = self.questions[0]
        self._state: EpisodeState | None = None
        self._score = Score({})
        self._return = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._seed = seed
            self._episode = -1
        observation, info = self._run(self.reset_flow())
        return observation, info

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        step: EnvStep = self._run(self.step_flow(int(action)))
        return step.observation, step.reward, step.terminated, step.truncated, step.info

    def action_masks(self) -> ActionMask:
        """Which actions make sense now (the name that sb3-contrib looks for)."""
        return self.view.action_mask(self._started())

    def reset_flow(self) -> Generator[Any, Any, tuple[Observation, dict[str, Any]]]:
        """The flow of a reset: the next question, asked unchanged and scored."""
        unscored = 0
        while True:
            self._episode += 1
            self._question = self._question_of(self._episode)
            state, answer = yield from opening_flow(
                self._question.question,
                self.models.roles,
                max_rewrites=self.view.max_rewrites,
                seed=self._call_seed(),
            )
            score: Score | str = answer.reason
            if not answer.failed:
                score = yield from self._score_flow(state)
                unscored += isinstance(score, str)
            if isinstance(score, Score):
                break
            # The target's own answers keep it from counting as gone where another model is.
            reason = self.models.client.why_gone()
            if reason or unscored >= MOST_UNSCORED_OPENINGS:
                raise ServerUnavailableError(reason or score)
        self._state, self._score = state, score
        self._return = 0.0
        observation = yield from self.view.observe_flow(state)
        return observation, self._opening_info(answer)

    def step_flow(self, action: int) -> Generator[Any, Any, EnvStep]:
        """The flow of a step, without the reset that follows an end."""
        before = self._started()
        if not 0 <= action < self.view.num_actions:
            raise ValueError(f"there is no action {action}")
        if action == STOP_ACTION:
            observation = yield from self.view.observe_flow(before)
            return self._ended(observation, 0.0, self._stop_info())
        rewrite: Rewrite = yield from rewrite_flow(
            before, action - 1, self.operators, self.models.roles, seed=self._call_seed()
        )
        score: Score | str = rewrite.failure or (yield from self._score_flow(rewrite.state))
        if isinstance(score, str):
            # What happened is not known, so nothing is concluded: the episode ends where it was.
            observation = yield from self.view.observe_flow(before)
            info = self._info(before, rewrite, None, 0.0, failure=score)
            return EnvStep(
                observation, self.action_masks(), 0.0, False, True, failed=True, info=info
            )
        reward = score.total - self._score.total
        info = self._info(before, rewrite, score, reward)
        self._state, self._score = rewrite.state, score
        self._return += reward
        observation = yield from self.view.observe_flow(rewrite.state)
        if rewrite.state.steps_left <= 0:
            return self._ended(observation, reward, info)
        return EnvStep(observation, self.action_masks(), reward, False, False, info=info)

    def step_and_reset_flow(self, action: int) -> Generator[Any, Any, EnvStep]:
        """The flow of a step and, at an end, of the reset: no row is wasted on it."""
        step: EnvStep = yield from self.step_flow(action)
        if not (step.terminated or step.truncated):
            return step
        observation, reset_info = yield from self.reset_flow()
        return EnvStep(
            observation,
            self.action_masks(),
            step.reward,
            step.terminated,
            step.truncated,
            step.failed,
            final_observation=step.observation,
            episode_return=None if step.failed else step.episode_return,
            info={**step.info, "next_episode": reset_info},
        )

    def first_call(self, action: int) -> Call | None:
        """The call that a step would begin with, if it needs one; nothing changes by asking."""
        roles = self.models.roles
        flow: Generator[Any, Any, Any]
        if action == STOP_ACTION:
            upcoming = self._question_of(self._episode + 1).question
            flow = opening_flow(upcoming, roles, max_rewrites=self.view.max_rewrites)
        else:
            flow = rewrite_flow(self._started(), action - 1, self.operators, roles)
        return next(flow, None)

    def get_state(self) -> dict[str, Any]:
        """All that makes this environment go on as it would have; plain values."""
        return SavedEpisode(
            seed=self._seed,
            episode=self._episode,
            random=dict(self.np_random.bit_generator.state),
            question_id=self._question.id,
            state=self._started(),
            score=self._score,
            episode_return=self._return,
        ).plain()

    def set_state(self, plain: Any) -> None:
        """Takes up a saved state, without a call; raises ValueError for what is none."""
        saved = saved_episode(plain, self.view)
        by_id = {question.id: question for question in self.questions}
        if saved.question_id not in by_id:
            raise ValueError(f"there is no question {saved.question_id!r}")
        try:
            self.np_random.bit_generator.state = saved.random
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError("random is not the state of a generator") from error
        self._seed, self._episode = saved.seed, saved.episode
        self._question = by_id[saved.question_id]
        self._state, self._score, self._return = saved.state, saved.score, saved.episode_return

    def _score_flow(self, state: EpisodeState) -> Generator[Any, Any, Score | str]:
        return score_flow(self._question, state, self.objective, self.models.roles)

    def _started(self) -> EpisodeState:
        if self._state is None:
            raise gym.error.ResetNeeded("call reset() before step()")
        return self._state

    def _ended(self, observation: Observation, reward: float, info: dict[str, Any]) -> EnvStep:
        info["episode_return"] = self._return
        return EnvStep(
            observation,
            self.action_masks(),
            reward,
            True,
            False,
            episode_return=self._return,
            info=info,
        )

    def _question_of(self, episode: int) -> Question:
        """Environments take turns through a shuffled order, so that each pass covers all."""
        turn = episode * self._num_envs + self._index
        epoch, position = divmod(turn, len(self.questions))
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self.questions))
        return self.questions[int(order[position])]

    def _call_seed(self) -> int:
        """A seed for calls that sample."""
        return int(self.np_random.integers(2**31))

    def _run(self, flow: Generator[Any, Any, Any]) -> Any:
        runner = self.models.runner(
            flow_handlers(self.objective, self.models.encoder), max_workers=1
        )
        return runner.run([flow])[0]

    def _opening_info(self, answer: TargetAnswer) -> dict[str, Any]:
        return {
            "question_id": self._question.id,
            "category": self._question.category,
            "query": self._question.question,
            "answer": answer.text,
            "score": self._score.total,
            "terms": _terms(self._score),
            "costs": {"answer": asdict(answer.cost)},
            "failed": False,
        }

    def _stop_info(self) -> dict[str, Any]:
        state = self._started()
        return {
            **self._common_info(state, state, "stop", self._score),
            "reward": 0.0,
            "failed": False,
            "failure": "",
            "refused_rewrite": "",
            "costs": {},
        }

    def _info(
        self,
        before: EpisodeState,
        rewrite: Rewrite,
        score: Score | None,
        reward: float,
        failure: str = "",
    ) -> dict[str, Any]:
        costs: dict[str, CallCost] = {}
        if rewrite.asked_mutator:
            costs["mutation"] = rewrite.mutation.cost
        if rewrite.asked_target:
            costs["answer"] = rewrite.answer.cost
        return {
            **self._common_info(before, rewrite.state, rewrite.mutation.operator, score),
            "reward": reward,
            "failed": bool(failure),
            "failure": failure,
            "refused_rewrite": "" if rewrite.mutation.failed else rewrite.mutation.reason,
            "costs": {name: asdict(cost) for name, cost in costs.items()},
        }

    def _common_info(
        self, before: EpisodeState, after: EpisodeState, operator: str, score: Score | None
    ) -> dict[str, Any]:
        return {
            "question_id": self._question.id,
            "category": self._question.category,
            "original_query": before.original,
            "operator": operator,
            "query": before.prompt,
            "rewritten_query": after.prompt,
            "rewritten_question": after.current,
            "previous_answer": before.answer,
            "answer": after.answer,
            "previous_score": self._score.total,
            "score": score.total if score else None,
            "terms": _terms(score) if score else {},
        }


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
        handlers = flow_handlers(self.envs[0].objective, self.envs[0].models.encoder)
        self._runner = self.envs[0].models.runner(handlers, max_workers=batch_size)
        self._observations = np.zeros((self.num_envs, self.observation_size), np.float32)
        self._masks = np.ones((self.num_envs, self.num_actions), bool)
        self._steps_begun = [0] * self.num_envs

    def batch_reset(self) -> tuple[Observation, list[dict[str, Any]]]:
        """Resets all: a row of observations and an info for each."""
        results = self._runner.run([env.reset_flow() for env in self.envs])
        for index, (observation, _) in enumerate(results):
            self._see(index, observation, self.envs[index].action_masks())
        return self._observations.copy(), [info for _, info in results]

    def batch_step(self, actions: Sequence[int]) -> list[EnvStep]:
        """A step of all: the results in the order of the environments."""
        if len(actions) != self.num_envs:
            raise ValueError(f"{len(actions)} actions for {self.num_envs} environments")
        for index, action in enumerate(actions):
            self.start(index, int(action))
        results: dict[int, EnvStep] = {}
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

    def wait(self) -> list[tuple[int, EnvStep]]:
        """The steps that have ended since: at least one, if any is under way."""
        ended: list[tuple[int, EnvStep]] = []
        for key, step in self._runner.wait():
            assert isinstance(key, int)
            self._see(key, step.observation, step.action_mask)
            ended.append((key, step))
        return ended

    def get_state(self) -> list[dict[str, Any]]:
        """The state of every environment, between steps."""
        return [env.get_state() for env in self.envs]

    def set_state(self, states: Sequence[Any], observations: Observation) -> None:
        """Takes up what `get_state` gave, and what each saw (`current`), without a call."""
        for index, (env, state) in enumerate(zip(self.envs, states, strict=True)):
            env.set_state(state)
            self._see(index, observations[index], env.action_masks())

    def _see(self, index: int, observation: Observation, mask: ActionMask) -> None:
        self._observations[index] = observation
        self._masks[index] = mask


def _terms(score: Score) -> dict[str, dict[str, Any]]:
    return {name: asdict(term) for name, term in score.terms.items()}
