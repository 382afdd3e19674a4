"""A trained policy at work: it rewrites questions that have no reference answer.

>>> from query_mutator.evaluation.trained_policy import load_policy
>>> # load_policy("runs/NAME").rewrite("wat is teh capital of peru").rewritten_query
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from ppo import ActorCritic
from query_mutator.base.closing import Closing
from query_mutator.base.errors import UserError
from query_mutator.base.flags import BETTER
from query_mutator.base.stored import stored_as
from query_mutator.base.weights import EMBEDDED
from query_mutator.environment.episodes import STOP_ACTION, EpisodeView
from query_mutator.environment.greedy import greedy_flow
from query_mutator.environment.keeping import Keeper, keeper_of
from query_mutator.models.keys import check_servers_of_file
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models, open_models
from query_mutator.operators import Operator
from query_mutator.runs.checkpoints import KEEPER, misfit_told, set_policy, tensor_bytes
from query_mutator.runs.directory import CONFIG, RunDirectory
from query_mutator.runs.scores import trained_under
from query_mutator.runs.settings import Settings, check, may_ask_judge, parsed_fields, servers_in
from query_mutator.runs.task import Task, load_run, model_settings

STOP = "stop"
LONGEST_OUTAGE_S = 30.0
"""Whoever waits for an answer does not wait as long as a run would for its server."""


@dataclass(frozen=True)
class NotKept:
    """A rewrite that was tried, and whose answer was not kept."""

    operator: str
    query: str
    """What was sent to the target model."""
    answer: str


@dataclass(frozen=True)
class Rewritten:
    """What a policy made of a question."""

    question: str
    rewritten_query: str
    """What to send to the target model: the question itself where the policy left it alone, or
    where the answer to it is kept."""
    operators: list[str]
    """Those that were tried, in order."""
    answer_before: str
    answer_after: str
    """The answer that is kept: to the rewritten query."""
    probabilities: dict[str, float]
    """Of every operator, and of `stop`, at the first choice; the most probable first."""
    failed: str = ""
    """Why a call failed; what had been reached before it stands."""
    refused: str = ""
    """Why a model's rewrite was not used."""
    not_kept: list[NotKept] = field(default_factory=list)
    """The rewrites among those that were tried that do not stand."""


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy with what it needs to act."""

    policy: ActorCritic
    operators: list[Operator]
    view: EpisodeView
    env_steps: int
    """Steps that it has been trained for."""
    trained_under: Sequence[int] = ()
    """The scores that paid them, in order; none where the objective is the user's own."""
    keeper: Keeper | None = None
    """What says which answer to keep; None where that is the last."""

    async def rewrite_flow(
        self, question: str, roles: Roles, *, least_probability: float = 0.0
    ) -> Rewritten:
        """The flow of one question, left alone where the policy is less sure than asked for."""
        episode = await greedy_flow(
            self.policy,
            question,
            self.operators,
            self.view,
            roles,
            keeper=self.keeper,
            least_probability=least_probability,
        )
        return Rewritten(
            question,
            episode.state.prompt,
            [self.operators[number].name for number in episode.state.tried],
            episode.opening.text,
            episode.state.answer,
            self._named(episode.probabilities),
            episode.failure.reason if episode.failure else "",
            "; ".join(filter(None, (one.mutation.refused for one in episode.rewrites))),
            [
                NotKept(one.mutation.operator, one.state.prompt, one.state.answer)
                for one in episode.dropped
            ],
        )

    def _named(self, probabilities: Sequence[float]) -> dict[str, float]:
        names = {action + 1: operator.name for action, operator in enumerate(self.operators)}
        names[STOP_ACTION] = STOP
        ordered = sorted(enumerate(probabilities), key=lambda pair: -pair[1])
        return {names[action]: probability for action, probability in ordered}


class LoadedPolicy(Closing):
    """A run's policy with its models: `rewrite` answers at once. A context manager closes it."""

    def __init__(self, trained: TrainedPolicy, models: Models, max_workers: int | None) -> None:
        self.trained, self.models = trained, models
        self._max_workers = max_workers

    def rewrite(self, question: str, *, least_probability: float = 0.0) -> Rewritten:
        """The question as the policy would ask it, with the answers before and after."""
        return self.rewrite_all([question], least_probability=least_probability)[0]

    def rewrite_all(
        self, questions: Sequence[str], *, least_probability: float = 0.0
    ) -> list[Rewritten]:
        """What the policy makes of each question, in order."""
        return list(self.rewrite_each(questions, least_probability=least_probability))

    def rewrite_each(
        self, questions: Sequence[str], *, least_probability: float = 0.0
    ) -> Iterator[Rewritten]:
        """What the policy makes of each question, in order, each as soon as it is known."""
        runner = self.models.runner({}, max_workers=self._max_workers)
        flows = (
            self.trained.rewrite_flow(
                question, self.models.roles, least_probability=least_probability
            )
            for question in questions
        )
        early: dict[int, Rewritten] = {}
        following = 0
        for number, rewritten in runner.each(flows):
            early[number] = rewritten
            while following in early:
                yield early.pop(following)
                following += 1

    def close(self) -> None:
        self.models.close()


def load_policy(run: str | Path, **changes: Any) -> LoadedPolicy:
    """The policy of a run, connected to its models.

    `changes` replace settings of the run: `server`, `target_model`, `mutator_model`, `batch_size`.
    """
    directory = RunDirectory(run)
    settings, operators = load_run(directory)
    # Nothing is scored, so no judge is asked.
    settings = replace(changed(settings, changes), judge_server=[], judge_model=None)
    settings = replace(settings, max_outage=min(settings.max_outage, LONGEST_OUTAGE_S))
    trained = load_trained(directory, settings, operators)
    return LoadedPolicy(
        trained, open_models(model_settings(settings, operators)), settings.max_workers
    )


def same_task(run: RunDirectory, task: Task) -> bool:
    """Whether questions, operators and the user's own objective are those of the training."""
    return bool(run.read_json(CONFIG).get("task_sha256") == task.fingerprint())


def check_same_task(run: RunDirectory, task: Task) -> None:
    """Refuses questions or an objective other than those that the run was trained with."""
    if not same_task(run, task):
        raise UserError(
            f"cannot evaluate {run.path}: its questions, operators or objective have changed since "
            "it was trained;\nbring them back, or train a new run"
        )


def changed(settings: Settings, changes: dict[str, Any]) -> Settings:
    """The settings of a run with what the user wants otherwise; None stands for no wish."""
    given = {key: value for key, value in changes.items() if value is not None}
    if "batch_size" in given:
        given["use_batching"] = True
    if "server" in given:
        given |= {"mutator_server": [], "target_server": [], "judge_server": []}
        if given["server"] not in (EMBEDDED, [EMBEDDED]):  # whose rewriter the run had
            given.setdefault("rewriter", None)
    else:
        check_servers_of_file(servers_in(asdict(settings)), "the run's config.json")
    settings = replace(settings, **parsed_fields(given))
    if not may_ask_judge(settings):
        settings = replace(settings, judge_server=[], judge_model=None)
    check(settings)
    return settings


def load_trained(run: RunDirectory, settings: Settings, operators: list[Operator]) -> TrainedPolicy:
    """The policy of a run's last checkpoint."""
    assert settings.max_rewrites is not None
    view = EpisodeView(len(operators), settings.max_rewrites)
    policy = ActorCritic(view.size, view.num_actions, settings.hidden_size)
    seen_bytes = 4 * view.size * settings.num_processes
    checkpoint = run.checkpoints.newest(tensor_bytes=tensor_bytes(policy) + seen_bytes)
    with misfit_told(run.path):
        set_policy(policy, checkpoint.tensors)
        env_steps = stored_as(int, checkpoint.state["counts"]["env_steps"], "env_steps")
        keeper = keeper_of(checkpoint.state[KEEPER]) if settings.keep == BETTER else None
    scores = trained_under(run, settings.objective)
    return TrainedPolicy(policy, operators, view, env_steps, scores, keeper)


def use_one_thread() -> None:
    """Keeps torch from taking cores that the model server needs."""
    torch.set_num_threads(1)
