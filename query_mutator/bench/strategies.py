"""Designs for N environments that each make T steps of two calls: rewrite, then answer.

All of them make the same calls; they differ in who waits for whom.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from query_mutator.models.calls import Call, Outcome
from query_mutator.models.client import ModelClient
from query_mutator.models.flows import Flow, FlowRunner
from query_mutator.models.roles import Roles

OURS = "own pace"


@dataclass(frozen=True)
class Workload:
    """The calls to make: for each environment and step a rewrite and an answer."""

    num_envs: int
    num_steps: int
    batch_size: int | None
    """Calls at once; None lets the client find out."""
    roles: Roles

    def mutation(self, env: int, step: int) -> Call:
        text = f"Rewrite this question: what is {env} times {step}"
        system = {"role": "system", "content": "You rewrite questions."}
        return self.roles.mutation_call((system, {"role": "user", "content": text}))

    def answer(self, env: int, step: int) -> Call:
        return self.roles.answer_call(f"What is {env} times {step}?")

    def calls(self) -> Iterator[Call]:
        """All of them, one environment after the other in each step."""
        for step in range(self.num_steps):
            for env in range(self.num_envs):
                yield self.mutation(env, step)
                yield self.answer(env, step)


Answered = list[Outcome]
Strategy = Callable[[ModelClient, Workload], Answered]


def sequential(client: ModelClient, work: Workload) -> Answered:
    """One call at a time."""
    answered: Answered = []
    for call in work.calls():
        answered += client.run([call], max_workers=1)
    return answered


def chunks(client: ModelClient, work: Workload) -> Answered:
    """Chunks of `batch_size` calls; each chunk waits for its slowest call."""
    return _phases(client, work, chunk=work.batch_size or work.num_envs)


def pool_per_phase(client: ModelClient, work: Workload) -> Answered:
    """All rewrites of a step through the pool, then all its answers."""
    return _phases(client, work, chunk=work.num_envs)


def barrier_per_step(client: ModelClient, work: Workload) -> Answered:
    """Each environment's answer follows its rewrite; a step waits for all environments."""
    runner: FlowRunner[Answered] = FlowRunner(client, {}, max_workers=work.batch_size)
    answered: Answered = []
    for step in range(work.num_steps):
        flows = [_chain(work, env, range(step, step + 1)) for env in range(work.num_envs)]
        answered += _joined(runner.run(flows))
    return answered


def own_pace(client: ModelClient, work: Workload) -> Answered:
    """Every environment at its own pace: the design of the trainer."""
    runner: FlowRunner[Answered] = FlowRunner(client, {}, max_workers=work.batch_size)
    steps = range(work.num_steps)
    return _joined(runner.run([_chain(work, env, steps) for env in range(work.num_envs)]))


def first_come(client: ModelClient, work: Workload) -> Answered:
    """Every environment at its own pace, and calls in the order in which they come up."""
    answered: Answered = []
    ended = threading.Semaphore(0)

    def go_on(chain: Flow[Answered], outcome: Outcome | None) -> None:
        try:
            call = chain.send(outcome)
        except StopIteration as stop:
            answered.extend(stop.value)
            ended.release()
            return
        future = client.submit(call, max_workers=work.batch_size)
        future.add_done_callback(lambda done: go_on(chain, done.result()))

    for env in range(work.num_envs):
        go_on(_chain(work, env, range(work.num_steps)), None)
    for _ in range(work.num_envs):
        ended.acquire()
    return answered


STRATEGIES: dict[str, Strategy] = {
    "sequential": sequential,
    "chunks": chunks,
    "pool per phase": pool_per_phase,
    "barrier per step": barrier_per_step,
    OURS: own_pace,
}
UNGROUPED = f"{OURS}, ungrouped"
FIRST_COME = f"{OURS}, first come"
WITHOUT_GROUPING: dict[str, Strategy] = {UNGROUPED: own_pace, FIRST_COME: first_come}
"""For servers with room for one model: with the furthest behind first, and in order of arrival."""


def _phases(client: ModelClient, work: Workload, *, chunk: int) -> Answered:
    answered: Answered = []
    for step in range(work.num_steps):
        for make in (work.mutation, work.answer):
            for start in range(0, work.num_envs, chunk):
                envs = range(start, min(start + chunk, work.num_envs))
                calls = [make(env, step) for env in envs]
                answered += client.run(calls, max_workers=work.batch_size)
    return answered


async def _chain(work: Workload, env: int, steps: range) -> Answered:
    answered: Answered = []
    for step in steps:
        answered.append(await work.mutation(env, step))
        answered.append(await work.answer(env, step))
    return answered


def _joined(parts: list[Answered]) -> Answered:
    return [item for part in parts for item in part]
