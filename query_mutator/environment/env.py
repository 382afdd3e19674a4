"""An environment: one question and up to K rewrites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from ppo.steps import ActionMask, EnvStep, Observation
from query_mutator.base.errors import ServerUnavailableError
from query_mutator.data import Question
from query_mutator.environment.asking import TargetAnswer
from query_mutator.environment.episodes import (
    STOP_ACTION,
    EpisodeState,
    EpisodeView,
    opening_flow,
    rewrite_flow,
)
from query_mutator.environment.keeping import Keeper, kept_flow
from query_mutator.environment.saved import SavedEpisode, saved_episode
from query_mutator.environment.scoring import gained_again, score_flow, scoring_runner
from query_mutator.environment.transition import Transition, costs_json, terms_json, undone
from query_mutator.models.calls import Call, Failure
from query_mutator.models.flows import Flow, FlowRunner, Result
from query_mutator.models.session import Models
from query_mutator.objectives import Batch, Objective, Score, as_objective
from query_mutator.operators import Operator

Opening = tuple[Observation, dict[str, Any]]
"""What a reset gives."""
MOST_UNSCORED_OPENINGS = 20
"""So many questions in a row whose first answer could not be scored end the run."""


class QueryMutationEnv(gym.Env[Observation, np.int64]):
    """An episode is one question and up to `max_rewrites` rewrites; action 0 stops.

    The reward is the change of the score from the previous answer to this one, so the return of
    an episode is how much better its last answer is than the answer to the question unchanged.
    With a `keeper`, an answer that looks worse than the one before is dropped, and its rewrite
    undone: the answers that count are those that are kept.
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
        keeper: Keeper | None = None,
    ) -> None:
        self.questions = list(questions)
        self.operators = list(operators)
        self.objective = as_objective(objective)
        self.models = models
        self.keeper = keeper
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

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Opening:
        super().reset(seed=seed)
        if seed is not None:
            self._seed = seed
            self._episode = -1
        return self._run(self.reset_flow())

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        step = self.advance(int(action))
        return step.observation, step.reward, step.terminated, step.truncated, step.info.info()

    def advance(self, action: int) -> EnvStep[Transition]:
        """A step, with all that is known of it."""
        return self._run(self.step_flow(action))

    def action_masks(self) -> ActionMask:
        """Which actions make sense now (the name that sb3-contrib looks for)."""
        return self.view.action_mask(self._started())

    async def reset_flow(self) -> Opening:
        """The flow of a reset: the next question, asked unchanged and scored."""
        unscored = 0
        while True:
            self._episode += 1
            self._question = self._question_of(self._episode)
            state, answer = await opening_flow(
                self._question.question,
                self.models.roles,
                max_rewrites=self.view.max_rewrites,
                seed=self._call_seed(),
            )
            reason = answer.reason
            if not answer.failed:
                score = await self._score_flow(state)
                if isinstance(score, Score):
                    break
                unscored, reason = unscored + 1, score.reason
            # The target's own answers keep it from counting as gone where another model is.
            gone = self.models.client.why_gone()
            if gone or unscored >= MOST_UNSCORED_OPENINGS:
                raise ServerUnavailableError(gone or reason)
        self._state, self._score = state, score
        self._return = 0.0
        return await self.view.observe_flow(state), self._opening_info(answer)

    async def step_flow(self, action: int) -> EnvStep[Transition]:
        """The flow of a step, without the reset that follows an end."""
        before = self._started()
        if not 0 <= action < self.view.num_actions:
            raise ValueError(f"there is no action {action}")
        if action == STOP_ACTION:
            return await self._ended(before, self._transition(before, before, "stop", self._score))
        rewrite = await rewrite_flow(
            before, action - 1, self.operators, self.models.roles, seed=self._call_seed()
        )
        score = rewrite.failure or await self._score_flow(rewrite.state)
        transition = self._transition(
            before,
            rewrite.state,
            rewrite.mutation.operator,
            score,
            refused_rewrite=rewrite.mutation.refused,
            calls={
                name: call
                for name, call in (
                    ("mutation", rewrite.mutation.call),
                    ("answer", rewrite.answer.call),
                )
                if call is not None
            },
        )
        if isinstance(score, Failure):
            # What happened is not known, so nothing is concluded: the episode ends where it was.
            return await self._stepped(before, transition)
        choice = await kept_flow(self.keeper, before, rewrite.state)
        transition = replace(transition, differences=choice.differences)
        if choice.kept:
            self._score = score
        else:
            transition = undone(transition, before.answer, self._score)
        self._state = choice.state
        self._return += transition.reward
        if choice.state.steps_left <= 0:
            return await self._ended(choice.state, transition)
        return await self._stepped(choice.state, transition)

    async def step_and_reset_flow(self, action: int) -> EnvStep[Transition]:
        """The flow of a step and, at an end, of the reset: no row is wasted on it."""
        step = await self.step_flow(action)
        if not (step.terminated or step.truncated):
            return step
        observation, reset_info = await self.reset_flow()
        return replace(
            step,
            observation=observation,
            action_mask=self.action_masks(),
            final_observation=step.observation,
            reset_info=reset_info,
        )

    def first_call(self, action: int) -> Call | None:
        """The call that a step would begin with, if it needs one; nothing changes by asking."""
        roles = self.models.roles
        flow: Flow[Any]
        if action == STOP_ACTION:
            upcoming = self._question_of(self._episode + 1).question
            flow = opening_flow(upcoming, roles, max_rewrites=self.view.max_rewrites)
        else:
            flow = rewrite_flow(self._started(), action - 1, self.operators, roles)
        try:
            call = flow.send(None)
        except StopIteration:
            return None
        flow.close()
        assert isinstance(call, Call), "a step begins with a call"
        return call

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

    def score_again(self) -> None:
        """Has the episode under way scored by the objective as it is, without a call.

        One that another score has begun would be paid the difference of the two.
        """
        self._score, self._return = gained_again(
            self._question,
            self._started(),
            self.objective,
            self.models.encoder,
            score=self._score,
            gained=self._return,
        )

    async def _score_flow(self, state: EpisodeState) -> Score | Failure:
        return await score_flow(self._question, state, self.objective, self.models.roles)

    def _started(self) -> EpisodeState:
        if self._state is None:
            raise gym.error.ResetNeeded("call reset() before step()")
        return self._state

    async def _ended(self, state: EpisodeState, transition: Transition) -> EnvStep[Transition]:
        return await self._stepped(
            state, replace(transition, terminated=True, episode_return=self._return)
        )

    async def _stepped(self, state: EpisodeState, transition: Transition) -> EnvStep[Transition]:
        """What the policy is told of a step that leads to `state`."""
        return EnvStep(
            await self.view.observe_flow(state),
            self.action_masks(),
            transition.reward,
            transition.terminated,
            truncated=transition.failed,
            failed=transition.failed,
            episode_return=transition.episode_return,
            info=transition,
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

    def _run(self, flow: Flow[Result]) -> Result:
        runner: FlowRunner[Result] = scoring_runner(self.objective, self.models, 1)
        return runner.run([flow])[0]

    def _opening_info(self, answer: TargetAnswer) -> dict[str, Any]:
        assert answer.call is not None
        return {
            "question_id": self._question.id,
            "category": self._question.category,
            "query": self._question.question,
            "answer": answer.text,
            "score": self._score.total,
            "terms": terms_json(self._score.terms),
            "costs": costs_json({"answer": answer.call}),
            "failed": False,
        }

    def _transition(
        self,
        before: EpisodeState,
        after: EpisodeState,
        operator: str,
        score: Score | Failure,
        **more: Any,
    ) -> Transition:
        failure = score if isinstance(score, Failure) else None
        found = score if isinstance(score, Score) else None
        return Transition(
            question_id=self._question.id,
            category=self._question.category,
            operator=operator,
            original_query=before.original,
            query=before.prompt,
            rewritten_query=after.prompt,
            rewritten_question=after.current,
            previous_answer=before.answer,
            answer=after.answer,
            previous_score=self._score.total,
            score=found.total if found else None,
            reward=found.total - self._score.total if found else 0.0,
            terms=found.terms if found else {},
            failed=failure is not None,
            failure=failure.reason if failure else "",
            **more,
        )
