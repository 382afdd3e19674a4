"""Trajectories of our own environment as samples: live, and from the log of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batching.generation.tokenizers import ByteTokenizer
from batching.streaming import (
    PipelineStream,
    RollingBatchPlanWindow,
    SampleStream,
    StreamSample,
    WindowConfig,
    by_success,
)
from batching.streaming.trajectories import (
    MutationEnvStream,
    TransitionLogStream,
    instruction_of,
    random_operators,
)
from query_mutator.base.errors import ServerUnavailableError, UserError
from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.group import BatchedQueryMutationEnv
from query_mutator.models.session import Models
from query_mutator.operators import Operator
from query_mutator.runs.directory import TRANSITIONS
from query_mutator.runs.log import RolloutLog
from query_mutator.servers.simulated import Fault, SimulatedServer

MakeModels = Callable[..., Models]
MakeEnv = Callable[..., QueryMutationEnv]
BYTES = ByteTokenizer()


def texts(sample: StreamSample) -> tuple[str, str]:
    """The prompt and the completion, read back from the tokens."""
    pairs = list(zip(sample.input_ids, sample.loss_mask, strict=True))
    prompt = bytes(token for token, mask in pairs if not mask)
    completion = bytes(token for token, mask in pairs if mask and token != BYTES.eos_id)
    return prompt.decode(), completion.decode()


class Watched:
    """An environment that remembers what its steps told."""

    def __init__(self, env: QueryMutationEnv) -> None:
        self.steps: list[dict[str, Any]] = []
        self.openings: list[dict[str, Any]] = []
        self._env, self._advance, self._reset = env, env.advance, env.reset
        vars(env).update(advance=self.advance, reset=self.reset)

    def advance(self, action: int) -> Any:
        result = self._advance(action)
        self.steps.append(result.info.info())
        return result

    def reset(self) -> Any:
        result = self._reset()
        self.openings.append(result[-1])
        return result


def test_steps_of_an_environment_become_samples(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv, operators: list[Operator]
) -> None:
    env = make_env(models_for(server), seed=3)
    watched = Watched(env)
    stream = MutationEnvStream(env, random_operators(1), BYTES, episodes=30)
    assert isinstance(stream, SampleStream)
    samples = list(stream)
    changed = [info for info in watched.steps if info["rewritten_query"] != info["query"]]
    assert len(samples) == len(changed) >= 20
    by_name = {operator.name: operator for operator in operators}
    openings = {info["question_id"]: info["score"] for info in watched.openings}
    for sample, info in zip(samples, changed, strict=True):
        prompt, completion = texts(sample)
        instruction = instruction_of(by_name[info["operator"]])
        assert prompt == f"{instruction}\n{info['original_query']}\n"
        assert completion == info["rewritten_query"]
        assert sample.input_ids[-1] == BYTES.eos_id
        assert sample.reward == info["reward"]
        assert sample.success == (info["score"] > info["previous_score"])
        assert sample.difficulty == pytest.approx(min(1, max(0, 1 - openings[info["question_id"]])))
        assert sample.meta["question_id"] == info["question_id"]
    assert {sample.success for sample in samples} == {True, False}
    assert len({sample.sample_id for sample in samples}) == len(samples)
    assert stream.metrics.samples + stream.metrics.dropped["unchanged"] == 30
    assert stream.metrics.episodes == 30


def test_a_second_rewrite_is_asked_for_with_the_first(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv, operators: list[Operator]
) -> None:
    env = make_env(models_for(server), max_rewrites=2)
    actions = iter([2, 3, 1, 0])
    stream = MutationEnvStream(env, lambda *_: next(actions), BYTES, episodes=2)
    first, second, third = stream
    one_sentence, fact_first = (instruction_of(operators[number]) for number in (1, 2))
    question = texts(first)[0].splitlines()[-1]
    assert texts(first)[0] == f"{one_sentence}\n{question}\n"
    assert texts(second)[0] == f"{one_sentence}\n{fact_first}\n{question}\n"
    assert [sample.step_index for sample in (first, second, third)] == [0, 1, 0]
    assert first.episode_id == second.episode_id != third.episode_id
    assert first.difficulty == second.difficulty
    assert second.meta["operators"] == ["one_sentence", "fact_first"]
    assert stream.metrics.dropped == {"stopped": 1}


def test_an_episode_that_was_abandoned_is_no_part_of_the_next_pass(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server), max_rewrites=3)
    actions = iter([2, 3, 0])
    stream = MutationEnvStream(env, lambda *_: next(actions), BYTES, episodes=1)
    assert next(iter(stream)).step_index == 0
    again = next(iter(stream))
    assert again.step_index == 0
    assert again.meta["operators"] == ["fact_first"]


def test_a_failed_step_never_becomes_a_sample(
    server: SimulatedServer, models_for: MakeModels, make_env: MakeEnv
) -> None:
    env = make_env(models_for(server))
    turns = iter(range(1000))

    def choose(*_: Any) -> int:
        # Every other answer to a rewrite is refused; what asks for the next question is not.
        server.set_faults(*([Fault("bad_request", times=1)] if next(turns) % 2 else []))
        return 1

    stream = MutationEnvStream(env, choose, BYTES, episodes=10)
    samples = list(stream)
    assert stream.metrics.dropped["failed"] == stream.metrics.failed_episodes == 5
    assert len(samples) + stream.metrics.dropped["unchanged"] == 5
    server.set_faults(Fault("bad_request"))
    with pytest.raises(ServerUnavailableError):
        list(stream)


def is_rewritten(line: dict[str, Any]) -> bool:
    return line["rewritten_query"] not in (line["query"], line["original_query"])


def write_log(
    run: Path, server: SimulatedServer, models: Models, make_env: MakeEnv, *, max_rewrites: int
) -> list[dict[str, Any]]:
    """A log as the trainer writes it, with failures in it; its lines."""
    envs = [make_env(models, index=i, num_envs=4, max_rewrites=max_rewrites) for i in range(4)]
    group = BatchedQueryMutationEnv(envs, 4)
    group.batch_reset()
    run.mkdir()
    chooser = random_operators(5)
    lines: list[dict[str, Any]] = []
    for update in range(3):
        log = RolloutLog(update, first_step=5 * update)
        for step in range(5):
            if step == 2:
                server.set_faults(Fault("bad_request", times=1))
            _, masks = group.current()
            actions = [chooser(masks[0], mask) for mask in masks]
            if step == 4:
                actions[0] = 0
            results = group.batch_step(actions)
            for env, result in enumerate(results):
                log.add(step, env, result.info)
        lines += [step.to_json() for step in log.transitions()]
    (run / TRANSITIONS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


@pytest.mark.parametrize("max_rewrites", [1, 3])
def test_the_log_of_a_run_gives_a_sample_for_each_rewrite(
    tmp_path: Path,
    server: SimulatedServer,
    models_for: MakeModels,
    make_env: MakeEnv,
    operators: list[Operator],
    max_rewrites: int,
) -> None:
    run = tmp_path / "run"
    lines = write_log(run, server, models_for(server), make_env, max_rewrites=max_rewrites)
    stream = TransitionLogStream(run, operators, BYTES)
    samples = list(stream)
    assert stream.metrics.samples + stream.metrics.num_dropped == len(lines) == 60
    assert stream.metrics.dropped["failed"] == sum(line["failed"] for line in lines) == 3
    assert stream.metrics.dropped["stopped"] == 3
    assert len({sample.sample_id for sample in samples}) == len(samples)
    kept = [line for line in lines if not line["failed"] and is_rewritten(line)]
    openings: dict[int, float] = {}
    expected = {}
    for line in lines:
        opening = openings.setdefault(line["env"], line["previous_score"])
        expected[line["env"], line["step"]] = opening
        if line["failed"] or line["terminated"]:
            del openings[line["env"]]
    for sample, line in zip(samples, kept, strict=True):
        prompt, completion = texts(sample)
        assert completion == line["rewritten_query"]
        assert prompt.splitlines()[-1] == line["original_query"]
        assert sample.reward == line["reward"]
        opening = expected[line["env"], line["step"]]
        assert sample.difficulty == pytest.approx(min(1, max(0, 1 - opening)))
        assert sample.meta["operators"][-1] == line["operator"]
        assert len(sample.meta["operators"]) == sample.step_index + 1 <= max_rewrites
    assert max(sample.step_index for sample in samples) == max_rewrites - 1
    assert list(TransitionLogStream(run, operators, BYTES)) == samples
    assert list(stream) == samples, "it can be read again"


def test_what_went_well_becomes_batches(
    tmp_path: Path,
    server: SimulatedServer,
    models_for: MakeModels,
    make_env: MakeEnv,
    operators: list[Operator],
) -> None:
    run = tmp_path / "run"
    write_log(run, server, models_for(server), make_env, max_rewrites=1)
    good = PipelineStream(TransitionLogStream(run, operators, BYTES), by_success())
    plans = list(RollingBatchPlanWindow(WindowConfig(window_size=8)).plans(good))
    held = [sample for plan in plans for sample in plan.samples]
    assert held
    assert all(sample.reward is not None and sample.reward > 0 for sample in held)


def test_a_damaged_log_is_told_by_its_line(
    tmp_path: Path,
    server: SimulatedServer,
    models_for: MakeModels,
    make_env: MakeEnv,
    operators: list[Operator],
) -> None:
    run = tmp_path / "run"
    lines = write_log(run, server, models_for(server), make_env, max_rewrites=1)
    changes: list[dict[str, Any]] = [{"env": "x"}, {"step": None}, {"terminated": 1}, {"score": {}}]
    for change in changes:
        damaged = [lines[0], {**lines[1], **change}, *lines[2:]]
        (run / TRANSITIONS).write_text("".join(json.dumps(line) + "\n" for line in damaged))
        with pytest.raises(UserError, match="line 2 is damaged"):
            list(TransitionLogStream(run, operators, BYTES))


def test_a_run_that_is_not_there_is_told(tmp_path: Path, operators: list[Operator]) -> None:
    with pytest.raises(UserError, match="No such file"):
        list(TransitionLogStream(tmp_path, operators, BYTES))
