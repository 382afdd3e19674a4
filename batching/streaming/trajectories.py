"""What was tried on questions, and what came of it, as samples for a mutator model.

A sample asks for what the operators do, shows the question as it was, and is answered with the
query as rewritten. Its reward is the change of the score, its difficulty how far the unchanged
question was from a full score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from batching.streaming.protocols import TextTokenizer
from batching.streaming.samples import StreamMetrics, StreamSample
from batching.streaming.texts import text_sample
from ppo.steps import ActionMask, Observation
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.episodes import STOP_ACTION
from query_mutator.environment.transition import Transition
from query_mutator.operators import Operator
from query_mutator.runs.transitions import read_transitions

SOURCE = "mutation"
STOP = "stop"

OperatorChooser = Callable[[Observation, ActionMask], int]
"""Says which action to take: 0 stops, operator number k of the environment is action k + 1."""


def random_operators(seed: int = 0) -> OperatorChooser:
    """Chooses among the operators that have not been tried, each with the same probability."""
    generator = np.random.default_rng(seed)

    def choose(_: Observation, mask: ActionMask) -> int:
        allowed = np.flatnonzero(mask)
        allowed = allowed[allowed != STOP_ACTION]
        return int(generator.choice(allowed)) if len(allowed) else STOP_ACTION

    return choose


def mutation_prompt(instructions: Sequence[str], question: str) -> str:
    """What a mutator model is given: what to do, and the question.

    >>> mutation_prompt(["Correct the spelling."], "wat is it")
    'Correct the spelling.\\nwat is it\\n'
    """
    return "\n".join([*instructions, question]) + "\n"


def instruction_of(operator: Operator) -> str:
    """What an operator does, as one would ask for it."""
    return operator.instruction or operator.description or operator.name


@dataclass
class _Episode:
    """What is known of an episode that goes on."""

    first_step: int
    opening_score: float
    operators: list[str] = field(default_factory=list)


class _Trajectories:
    """Turns transitions, in the order of their environments' steps, into samples."""

    def __init__(self, operators: Sequence[Operator], tokenizer: TextTokenizer) -> None:
        self.metrics = StreamMetrics()
        self._instructions = {operator.name: instruction_of(operator) for operator in operators}
        self._tokenizer = tokenizer
        self._episodes: dict[int, _Episode] = {}

    def _take(self, step: Transition) -> Iterator[StreamSample]:
        """The sample of a transition, if it gives one; why it gives none is counted."""
        if step.failed or step.score is None:
            # What happened is not known; the episode ended where it was.
            self._episodes.pop(step.env, None)
            self.metrics.failed_episodes += 1
            self.metrics.drop("failed")
            return
        episode = self._episodes.setdefault(step.env, _Episode(step.step, step.previous_score))
        episode.operators.append(step.operator)
        if step.terminated:
            del self._episodes[step.env]
            self.metrics.episodes += 1
            self.metrics.solved_episodes += step.score > episode.opening_score
        if step.operator == STOP:
            self.metrics.drop("stopped")
        elif step.rewritten_query in (step.query, step.original_query):
            self.metrics.drop("unchanged")
        else:
            yield self.metrics.record(self._sample(step, episode))
        if step.dropped is not None:  # the next rewrite does not build on it
            episode.operators.pop()

    def _sample(self, step: Transition, episode: _Episode) -> StreamSample:
        score = step.tried_score
        assert score is not None
        episode_id = f"{step.question_id}/{step.env}.{episode.first_step}"
        index = step.step - episode.first_step
        # A second rewrite builds on the first: together they lead from the question to the query.
        instructions = [self._instructions.get(name, name) for name in episode.operators]
        return text_sample(
            self._tokenizer,
            prompt=mutation_prompt(instructions, step.original_query),
            completion=step.rewritten_query,
            sample_id=f"{episode_id}/{index}",
            meta={
                "question_id": step.question_id,
                "operators": list(episode.operators),
                "score": float(score),
            },
            source=SOURCE,
            episode_id=episode_id,
            step_index=index,
            # Its own, also where its answer was not kept.
            reward=score - step.previous_score,
            difficulty=float(np.clip(1.0 - episode.opening_score, 0.0, 1.0)),
            success=score > step.previous_score,
        )


class TransitionLogStream(_Trajectories):
    """Samples from the `transitions.jsonl` of a run."""

    def __init__(
        self, run: str | Path, operators: Sequence[Operator], tokenizer: TextTokenizer
    ) -> None:
        """`run` is the run's directory; `operators` say what the names in its log stand for."""
        super().__init__(operators, tokenizer)
        self.run = Path(run)

    def __iter__(self) -> Iterator[StreamSample]:
        self._episodes.clear()
        for step in read_transitions(self.run):
            yield from self._take(step)


class MutationEnvStream(_Trajectories):
    """Samples from an environment that is played as they are asked for."""

    def __init__(
        self,
        env: QueryMutationEnv,
        choose: OperatorChooser,
        tokenizer: TextTokenizer,
        *,
        episodes: int,
    ) -> None:
        """`choose` is a policy, or anything that picks an operator."""
        super().__init__(env.operators, tokenizer)
        self.env = env
        self.choose = choose
        self.episodes = episodes
        self._steps = 0

    def __iter__(self) -> Iterator[StreamSample]:
        for _ in range(self.episodes):
            observation, _ = self.env.reset()
            # Whoever stopped asking for samples left an episode that did not end.
            self._episodes.clear()
            ended = False
            while not ended:
                action = self.choose(observation, self.env.action_masks())
                step = self.env.advance(action)
                observation, ended = step.observation, step.terminated or step.truncated
                yield from self._take(replace(step.info, step=self._steps))
                self._steps += 1
