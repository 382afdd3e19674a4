"""Stream samples, datasets as streams, filters and transforms."""

from __future__ import annotations

import asyncio
import dataclasses
import doctest
import importlib
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching.core import Sample
from batching.streaming import (
    AsyncOfflineDatasetStream,
    AsyncPipelineStream,
    AsyncSampleStream,
    OfflineDatasetStream,
    PipelineStream,
    SampleStream,
    SampleTransform,
    StreamPosition,
    StreamSample,
    by_difficulty,
    by_length,
    by_reward,
    by_source,
    by_success,
)
from tests.nightly import examples

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)  # fmt: skip


@st.composite
def stream_samples(draw: st.DrawFn) -> StreamSample:
    length = draw(st.integers(0, 6))
    tokens = st.lists(st.integers(0, 2**31 - 1), min_size=length, max_size=length)
    bits = st.lists(st.integers(0, 1), min_size=length, max_size=length)
    return StreamSample(
        tuple(draw(tokens)),
        tuple(draw(bits)),
        draw(st.none() | bits.map(sorted).map(tuple)),
        draw(st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=3)),
        source=draw(st.text(max_size=4)),
        episode_id=draw(st.text(max_size=4)),
        step_index=draw(st.integers(0, 2**40)),
        reward=draw(st.none() | st.floats(-1e15, 1e15)),
        difficulty=draw(st.none() | st.floats(0, 1)),
        success=draw(st.none() | st.booleans()),
        replay_count=draw(st.integers(0, 9)),
        priority=draw(st.floats(0, 1e15)),
    )


@given(stream_samples())
@examples(100)
def test_a_sample_comes_back_from_json_as_it_was(sample: StreamSample) -> None:
    text = json.dumps(sample.to_dict(), allow_nan=False)
    assert StreamSample.from_dict(json.loads(text)) == sample


@given(stream_samples())
@examples(50)
def test_a_replayed_sample_is_a_copy_that_differs_in_its_count_alone(sample: StreamSample) -> None:
    before = sample.to_dict()
    replayed = sample.with_replay()
    assert replayed == dataclasses.replace(sample, replay_count=sample.replay_count + 1)
    assert sample.to_dict() == before
    assert sample.with_priority(3) == dataclasses.replace(sample, priority=3.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        replayed.reward = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "wrong",
    [
        {"reward": float("nan")},
        {"reward": 1e16},
        {"difficulty": 1.01},
        {"difficulty": float("nan")},
        {"priority": -0.1},
        {"step_index": -1},
        {"replay_count": -1},
        {"loss_mask": (2,)},
        {"loss_mask": (1, 1)},
        {"meta": {1: "x"}},
        {"meta": {"x": (1, 2)}},
        {"meta": {"x": float("inf")}},
    ],
)
def test_what_is_no_sample_cannot_be_made(wrong: dict[str, Any]) -> None:
    values: dict[str, Any] = {"input_ids": (1,), "loss_mask": (1,), **wrong}
    with pytest.raises(ValueError, match=r"must|may|entries"):
        StreamSample(**values)


def test_a_sample_does_not_change_with_what_it_was_made_from() -> None:
    meta: dict[str, Any] = {"sample_id": "a", "inner": {"list": [1]}}
    sample = StreamSample((1,), (1,), meta=meta)
    meta["sample_id"] = "b"
    meta["inner"]["list"].append(2)
    assert sample.meta == {"sample_id": "a", "inner": {"list": [1]}}


def test_samples_can_be_in_a_set() -> None:
    one, same, other = (StreamSample((1,), (1,), meta={"sample_id": name}) for name in "aab")
    assert {one, same, other} == {one, other}


def test_numbers_of_numpy_become_plain_ones() -> None:
    tokens = np.array([3, 4])
    sample = StreamSample(tokens, tokens > 3, reward=np.float32(0.5), priority=np.int64(2))  # type: ignore[arg-type]
    assert json.loads(json.dumps(sample.to_dict()))["input_ids"] == [3, 4]
    assert sample.loss_mask == (0, 1)
    assert (sample.reward, sample.priority) == (0.5, 2.0)


def dataset(count: int) -> list[Sample]:
    return [Sample((n,), (1,), meta={"sample_id": str(n)}) for n in range(count)]


def ids(stream: Any) -> list[str]:
    return [sample.sample_id for sample in stream]


async def gathered(stream: Any) -> list[str]:
    return [sample.sample_id async for sample in stream]


@given(st.integers(0, 12), st.integers(1, 3), st.integers(0, 5), st.booleans(), st.integers(0, 40))
@examples(150)
def test_a_stream_resumed_anywhere_gives_the_tail_of_a_full_pass(
    count: int, epochs: int, seed: int, shuffle: bool, taken: int
) -> None:
    options: dict[str, Any] = {"num_epochs": epochs, "seed": seed, "shuffle": shuffle}
    samples = dataset(count)
    whole = ids(OfflineDatasetStream(samples, **options))
    stream = OfflineDatasetStream(samples, **options)
    head = [sample.sample_id for sample, _ in zip(stream, range(taken), strict=False)]
    # `zip` asks the stream for one more before it sees that the numbers are at their end.
    consumed = stream.metrics.samples
    assert head == whole[: len(head)]
    assert ids(OfflineDatasetStream(samples, **options, start=stream.position)) == whole[consumed:]
    async_stream = AsyncOfflineDatasetStream(samples, **options, start=stream.position)
    assert asyncio.run(gathered(async_stream)) == whole[consumed:]
    assert ids(stream) == whole[consumed:], "a second loop goes on"


@given(st.integers(0, 30), st.integers(1, 3), st.integers(0, 5))
@examples(50)
def test_every_epoch_gives_every_sample_once(count: int, epochs: int, seed: int) -> None:
    stream = OfflineDatasetStream(dataset(count), num_epochs=epochs, seed=seed)
    given_out = ids(stream)
    expected = sorted(map(str, range(count)))
    for epoch in range(epochs):
        assert sorted(given_out[epoch * count : (epoch + 1) * count]) == expected
    assert stream.metrics.samples == stream.metrics.tokens == count * epochs


def test_epochs_and_seeds_have_orders_of_their_own_and_always_the_same() -> None:
    first = ids(OfflineDatasetStream(dataset(50)))
    second = ids(OfflineDatasetStream(dataset(50), start=StreamPosition(1), num_epochs=2))
    assert first != second
    assert ids(OfflineDatasetStream(dataset(50), seed=7)) != first
    assert ids(OfflineDatasetStream(dataset(50), shuffle=False)) == ids(dataset(50))
    assert first[:5] == ["27", "17", "4", "8", "36"], "on every machine"


def test_a_stream_without_end_goes_on_and_an_empty_one_ends() -> None:
    stream = OfflineDatasetStream(dataset(3), num_epochs=None)
    assert len([next(stream) for _ in range(100)]) == 100
    assert stream.position == StreamPosition(33, 1)
    assert ids(OfflineDatasetStream([], num_epochs=None)) == []


@pytest.mark.parametrize("start", [(0, 4), (-1, 0), (0, -1)])
def test_a_position_beyond_the_dataset_is_refused(start: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"position|beyond"):
        OfflineDatasetStream(dataset(3), start=StreamPosition(*start))


def test_other_tasks_have_their_turn_while_a_stream_is_read() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def both() -> None:
        task = asyncio.ensure_future(other())
        assert len(await gathered(AsyncOfflineDatasetStream(dataset(1000)))) == 1000
        task.cancel()

    asyncio.run(both())
    assert turns >= 10


MIXED = [
    StreamSample((1,) * 4, (1,) * 4, reward=1.0, success=True, difficulty=0.2, source="gym"),
    StreamSample((1,) * 9, (1,) * 9, reward=-1.0, success=False, difficulty=0.9, source="gym"),
    StreamSample((1,) * 2, (0,) * 2),
    StreamSample((1,) * 6, (1,) * 6, reward=0.5, success=True, difficulty=0.5, source="mutation"),
]


@pytest.mark.parametrize(
    ("sieve", "kept"),
    [
        (by_length(least=4), [0, 1, 3]),
        (by_length(most=4), [0, 2]),
        (by_length(4, 6), [0, 3]),
        (by_reward(least=0.5), [0, 3]),
        (by_reward(most=0.9), [1, 3]),
        (by_success(), [0, 3]),
        (by_success(False), [1]),
        (by_difficulty(least=0.5), [1, 3]),
        (by_difficulty(most=0.5), [0, 3]),
        (by_source("gym", "offline"), [0, 1, 2]),
        (by_source("gym") & by_success(), [0]),
        (by_source("mutation") | by_length(most=2), [2, 3]),
        (~by_success(), [1, 2]),
    ],
)
def test_filters_keep_what_their_names_say(sieve: Any, kept: list[int]) -> None:
    stream = PipelineStream(OfflineDatasetStream(MIXED, shuffle=False), sieve)
    assert list(stream) == [MIXED[index] for index in kept]
    assert stream.metrics.samples == len(kept)
    assert dict(stream.metrics.dropped) == {sieve.name: len(MIXED) - len(kept)}


def test_steps_act_in_their_order_and_what_each_refuses_is_counted() -> None:
    double = SampleTransform(
        "twice", lambda s: dataclasses.replace(s, reward=None if s.reward is None else 2 * s.reward)
    )
    steps = (by_success(), double, by_reward(most=1.5))
    stream = PipelineStream(OfflineDatasetStream(MIXED, shuffle=False), *steps)
    assert [sample.reward for sample in stream] == [1.0]
    assert stream.metrics.dropped == {"success": 2, "reward ≤ 1.5": 1}
    assert stream.metrics.samples + stream.metrics.num_dropped == len(MIXED)
    assert stream.metrics.mean_reward == 1.0

    again = AsyncPipelineStream(AsyncOfflineDatasetStream(MIXED, shuffle=False), *steps)

    async def rewards() -> list[float | None]:
        return [sample.reward async for sample in again]

    assert asyncio.run(rewards()) == [1.0]
    assert again.metrics == stream.metrics


def test_pipelines_of_pipelines_are_streams() -> None:
    inner = PipelineStream(OfflineDatasetStream(MIXED, shuffle=False), by_source("gym"))
    outer = PipelineStream(inner, by_success())
    assert list(outer) == [MIXED[0]]
    assert (inner.metrics.num_dropped, outer.metrics.num_dropped) == (2, 1)
    for stream in (inner, OfflineDatasetStream(MIXED)):
        assert isinstance(stream, SampleStream)
        assert not isinstance(stream, AsyncSampleStream)
    assert isinstance(AsyncPipelineStream(AsyncOfflineDatasetStream(MIXED)), AsyncSampleStream)


def test_metrics_are_means_over_the_samples_that_tell() -> None:
    stream = OfflineDatasetStream(MIXED, shuffle=False)
    assert stream.metrics.mean_reward is None
    list(stream)
    metrics = stream.metrics
    assert (metrics.samples, metrics.tokens, metrics.loss_tokens) == (4, 21, 19)
    assert metrics.mean_reward == pytest.approx(0.5 / 3)
    assert metrics.success_rate == pytest.approx(2 / 3)
    assert metrics.mean_difficulty == pytest.approx(1.6 / 3)
    assert metrics.mean_length == pytest.approx(21 / 4)
    assert json.loads(json.dumps(metrics.to_dict()))["success_rate"] == metrics.success_rate


def test_a_stream_of_ones_own_needs_no_more_than_the_protocol() -> None:
    class Mine:
        metrics = OfflineDatasetStream([]).metrics

        async def __aiter__(self) -> AsyncIterator[StreamSample]:
            for sample in MIXED:
                yield sample

    assert isinstance(Mine(), AsyncSampleStream)
    assert len(asyncio.run(gathered(AsyncPipelineStream(Mine(), by_success())))) == 2


@pytest.mark.parametrize(
    "name",
    [
        "batching.streaming.filters",
        "batching.streaming.offline",
        "batching.streaming.replay",
        "batching.streaming.samples",
        "batching.streaming.sum_tree",
        "batching.streaming.telnet",
        "batching.streaming.trajectories",
        "batching.streaming.window",
        "batching.streaming.puzzle_games",
    ],
)
def test_docstring_examples_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
