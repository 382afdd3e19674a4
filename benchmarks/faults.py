"""Does a policy learn as well when calls fail? The learning benchmark's task, asked over HTTP.

Every step of the simulated task is a call to a simulated server, made by the product's own client;
a call that fails fails its step. With faults, 3 in 10 calls fail, in every way that the simulated
server knows, and steps are made until as many are valid as without.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.learning.__main__ import simulated_tasks
from benchmarks.learning.learners import TaskEnv, greedy_value, learning, steps_per_update
from benchmarks.learning.tasks import Task
from ppo.steps import ActionMask, EnvStep, Observation
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main, leave
from query_mutator.evaluation.statistics import paired_differences
from query_mutator.models.calls import Call, Outcome
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import connect
from query_mutator.models.settings import ModelSettings
from query_mutator.runs.settings import Settings
from query_mutator.servers.simulated import Fault, SimulatedServer
from query_mutator.servers.simulated.faults import KINDS

FAILING = tuple(sorted(KINDS - {"hostile_text"}))
"""Hostile text is an answer all the same."""
FAILED_SHARE = 0.3
TIMEOUT_S = 0.25
MODEL = "llama3.2:3b"


def faults_of_every_kind(share: float, *, seed: int = 0, spared: int = 0) -> list[Fault]:
    """Rules by which this share of all calls fails, each kind as often as any other.

    The first calls can be spared: a model that does not answer its first one ends a run.
    """
    each = share / len(FAILING)
    return [
        Fault(
            kind,
            # The rules are asked in turn: each sees what those before it have let pass.
            probability=each / (1 - place * each),
            seed=1000 * seed + place,
            calls=range(spared + 1, sys.maxsize),
            interval_s=0.05,
            retry_after_s=0.01,
            size_bytes=17 * 1024 * 1024,
        )
        for place, kind in enumerate(FAILING)
    ]


class CalledTask:
    """Environments of a task of which every step is a model call: a group for the collector."""

    def __init__(self, task: Task, client: ModelClient, num_envs: int, *, seed: int) -> None:
        self._envs = [TaskEnv(task, seed, index) for index in range(num_envs)]
        self._client = client
        self._answered: queue.SimpleQueue[tuple[int, int, Outcome]] = queue.SimpleQueue()
        self._steps = [0] * num_envs
        self.num_envs = num_envs
        self.observation_size = task.observations.shape[1]
        self.num_actions = task.num_actions
        self._observations = np.stack([env.reset()[0] for env in self._envs])
        self._masks = np.ones((num_envs, self.num_actions), bool)

    def current(self) -> tuple[Observation, ActionMask]:
        return self._observations, self._masks

    def start(self, index: int, action: int) -> None:
        # The words decide which faults strike: they do not depend on who was ready when.
        self._steps[index] += 1
        words = f"step {self._steps[index]} of {index}: what does {action} give?"
        message = {"role": "user", "content": words}
        call = Call("answer", MODEL, (message,), max_tokens=16)
        future = self._client.submit(call, max_workers=self.num_envs)
        future.add_done_callback(lambda done: self._answered.put((index, action, done.result())))

    def expect(self, index: int, action: int) -> None:
        """Nothing can be done ahead."""

    def wait(self) -> list[tuple[int, EnvStep[None]]]:
        arrived = [self._answered.get()]
        while not self._answered.empty():
            arrived.append(self._answered.get())
        return [(index, self._ended(index, action, done)) for index, action, done in arrived]

    def _ended(self, index: int, action: int, outcome: Outcome) -> EnvStep[None]:
        env = self._envs[index]
        seen, reward, *_ = env.step(action)
        self._observations[index], _ = env.reset()
        failed = outcome.failed
        return EnvStep(
            observation=self._observations[index],
            action_mask=self._masks[index],
            reward=0.0 if failed else reward,
            terminated=not failed,
            truncated=failed,
            info=None,
            failed=failed,
            final_observation=seen,
        )


@dataclass
class Learned:
    """What a policy is worth after as many valid steps as asked for, and what they took."""

    share_of_gap: float
    valid: int = 0
    failed: int = 0
    failures_by_kind: dict[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def client_of(server: SimulatedServer, *, retries: int) -> Iterator[ModelClient]:
    """The product's client, asking this server."""
    settings = ModelSettings(
        server.url, timeout_s=10.0, load_timeout_s=10.0, retries=retries, target_model=MODEL
    )
    connection = connect(settings)
    client = ModelClient(connection.backends, settings)
    warm = Call("answer", MODEL, ({"role": "user", "content": "Hello"},), max_tokens=1)
    client.run([warm])
    try:
        yield client
    finally:
        client.close()
        connection.close()


def learn(
    task: Task, seed: int, valid_steps: int, faults: Sequence[Fault] = (), *, retries: int = 0
) -> Learned:
    """A policy of the product's PPO with its default settings."""
    envs = Settings().num_processes
    counted = Learned(0.0)
    with SimulatedServer(slots=envs) as server, client_of(server, retries=retries) as client:
        if faults:
            server.set_faults(*faults)
            client.backends[0].http.timeout_s = TIMEOUT_S
        group = CalledTask(task, client, envs, seed=seed)
        for policy, storage in learning(group, envs, seed):
            counted.valid += int(storage.valid.sum())
            counted.failed += int((~storage.valid).sum())
            if counted.valid >= valid_steps:
                counted.share_of_gap = task.share_of_gap(greedy_value(task, policy).value)
                break
        counted.failures_by_kind = dict(client.counts().failures_by_kind)
    return counted


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m benchmarks.faults", description=__doc__)
    add = parser.add_argument
    add("--seeds", type=at_least(1), default=10, help="tasks, each its own seed (default: 10)")
    add("--updates", type=at_least(1), default=16, metavar="N",
        help="as many valid steps as N full rollouts have (default: 16)")  # fmt: skip
    add("--retries", type=at_least(0), default=0,
        help="further attempts of a call that failed (default: 0)")  # fmt: skip
    add("--dataset", metavar="FILE", help="questions for the task (default: the shipped)")
    args = parser.parse_args(argv)
    from tqdm import tqdm

    torch.set_num_threads(1)
    valid_steps = args.updates * steps_per_update()
    without, with_faults = [], []
    with _quiet("query_mutator.models"):
        tasks = simulated_tasks(range(args.seeds), args.dataset)
        for seed, task in tqdm(tasks.items(), disable=None):
            without.append(learn(task, seed, valid_steps, retries=args.retries))
            faults = faults_of_every_kind(FAILED_SHARE, seed=seed)
            with_faults.append(learn(task, seed, valid_steps, faults, retries=args.retries))
    print(as_text(without, with_faults))
    return 0


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Without the warnings of a logger: failures are what is wanted here."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def as_text(without: Sequence[Learned], with_faults: Sequence[Learned]) -> str:
    """Both means, and their difference with its interval."""
    shares = [
        np.array([learned.share_of_gap for learned in group]) for group in (without, with_faults)
    ]
    failed = sum(learned.failed for learned in with_faults)
    steps = failed + sum(learned.valid for learned in with_faults)
    kinds: dict[str, int] = {}
    for learned in with_faults:
        for kind, count in learned.failures_by_kind.items():
            kinds[kind] = kinds.get(kind, 0) + count
    difference: npt.NDArray[np.float64] = shares[1] - shares[0]
    found = paired_differences({"faults": difference})["faults"]
    by_kind = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return (
        "share of the gap between random (0) and the contextual optimum (1), held-out questions, "
        f"{len(without)} seeds, {without[0].valid} valid steps\n"
        f"without faults {shares[0].mean():.3f}\n"
        f"with faults    {shares[1].mean():.3f}  ({failed / max(1, steps):.1%} of the steps "
        f"failed: {by_kind})\n"
        f"difference     {found.mean:+.3f}  (95 % interval {found.low:+.3f}..{found.high:+.3f})"
    )


main = as_main(run)

if __name__ == "__main__":
    leave(main())
