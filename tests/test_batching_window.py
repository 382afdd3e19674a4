"""Rolling windows: budget, completeness, order and fingerprints."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching.core import OverflowPolicy, PadPolicy
from batching.generation.batches import collate
from batching.planning import BatchingConfig, PackingConfig
from batching.streaming import (
    AsyncOfflineDatasetStream,
    OfflineDatasetStream,
    ReplayBuffer,
    RollingBatchPlanWindow,
    StreamSample,
    WindowConfig,
    WindowPlan,
)
from query_mutator.base.errors import UserError
from tests.nightly import examples


def samples(lengths: list[int], **more: Any) -> list[StreamSample]:
    return [
        StreamSample((1,) * length, (1,) * length, meta={"sample_id": f"s{n}"}, **more)
        for n, length in enumerate(lengths)
    ]


@st.composite
def configs(draw: st.DrawFn) -> WindowConfig:
    overflow_max = draw(st.integers(12, 40))
    budget = draw(st.integers(8, 100))
    packing = None
    if draw(st.booleans()):
        most = min(overflow_max, budget)
        packing = PackingConfig(max_length=draw(st.integers(1, most)))
    return WindowConfig(
        window_size=draw(st.integers(1, 12)),
        batching=BatchingConfig(
            token_budget=budget,
            bucket_edges=(4, 11),
            overflow_max=overflow_max,
            min_length=draw(st.integers(1, 2)),
            seed=draw(st.integers(0, 5)),
            shuffle=draw(st.booleans()),
            drop_last=draw(st.booleans()),
            on_overflow=draw(st.sampled_from([p for p in OverflowPolicy if p != "error"])),
            pad_policy=draw(st.sampled_from(list(PadPolicy))),
            packing=packing,
        ),
    )


@given(configs(), st.lists(st.integers(0, 60), max_size=40))
@examples(150)
def test_no_window_exceeds_the_budget_or_loses_a_sample_uncounted(
    config: WindowConfig, lengths: list[int]
) -> None:
    stream = samples(lengths)
    window = RollingBatchPlanWindow(config)
    plans = list(window.plans(stream))
    assert [sample for plan in plans for sample in plan.samples] == stream, "each in one window"
    assert all(len(plan.samples) == config.window_size for plan in plans[:-1])
    assert window.waiting == 0
    assert window.next_window == len(plans)
    for index, plan in enumerate(plans):
        assert plan.index == index
        check_window(plan, config.batching)
    assert window.metrics.num_samples == sum(plan.table.num_entries for plan in plans)


def check_window(plan: WindowPlan, batching: BatchingConfig) -> None:
    token_counts = plan.table.token_counts.tolist()
    assert all(count <= batching.token_budget for count in token_counts)
    parts: dict[str, list[tuple[int, int]]] = {}
    for number, batch in enumerate(plan):
        assert batch.token_count == batch.batch_size * batch.max_length == token_counts[number]
        held = plan.samples_of(number)
        assert [sample.sample_id for sample in held] == list(batch.sample_ids)
        for sample, (start, length) in zip(held, batch.spans, strict=True):
            assert start + length <= len(sample)
            parts.setdefault(sample.sample_id, []).append((start, length))
    placed = 0
    for sample in plan.samples:
        end = 0
        for start, length in sorted(parts.get(sample.sample_id, [])):
            assert start >= end, "no token twice"
            end, placed = start + length, placed + length
    all_tokens = sum(map(len, plan.samples))
    assert placed + plan.counts.lost_tokens == all_tokens, "each token once, or counted"
    if batching.on_overflow is not OverflowPolicy.SPLIT:
        assert all(len(found) == 1 for found in parts.values())
        left_out = plan.counts.skipped + plan.counts.too_short + plan.counts.dropped
        assert len(parts) + left_out == len(plan.samples)


@given(configs(), st.lists(st.integers(1, 30), max_size=30))
@examples(60)
def test_the_same_stream_gives_the_same_windows_however_it_arrives(
    config: WindowConfig, lengths: list[int]
) -> None:
    stream = samples(lengths)
    whole = [
        (plan.fingerprint, list(plan)) for plan in RollingBatchPlanWindow(config).plans(stream)
    ]
    one_by_one = RollingBatchPlanWindow(config)
    by_hand = [plan for sample in stream if (plan := one_by_one.add(sample)) is not None]
    if (last := one_by_one.flush()) is not None:
        by_hand.append(last)
    assert [(plan.fingerprint, list(plan)) for plan in by_hand] == whole
    assert one_by_one.flush() is None

    # Whoever goes on later, with the number of the window that is next, gets the rest.
    rest = RollingBatchPlanWindow(config, first_window=1).plans(stream[config.window_size :])
    assert [(plan.fingerprint, list(plan)) for plan in rest] == whole[1:]


def plan_of(config: WindowConfig, stream: list[StreamSample], first_window: int = 0) -> WindowPlan:
    (plan,) = RollingBatchPlanWindow(config, first_window=first_window).plans(stream)
    return plan


def test_a_fingerprint_changes_with_every_setting_sample_and_window() -> None:
    base = WindowConfig(64, BatchingConfig(token_budget=128, overflow_max=2048))
    lengths = [5, 9, 30, 64, 100, 3]
    stream = samples(lengths)
    prints = {plan_of(base, stream).fingerprint}
    changed: list[dict[str, Any]] = [
        {"token_budget": 129},
        {"bucket_edges": (128, 256, 512, 1000)},
        {"overflow_max": 2049},
        {"min_length": 2},
        {"seed": 43},
        {"shuffle": False},
        {"drop_last": True},
        {"on_overflow": "skip"},
        {"pad_policy": "pad_to_bucket"},
        {"packing": PackingConfig(max_length=128)},
        {"packing": PackingConfig(max_length=127)},
        {"packing": PackingConfig("greedy", 128)},  # type: ignore[arg-type]
    ]
    for change in changed:
        other = WindowConfig(64, dataclasses.replace(base.batching, **change))
        prints.add(plan_of(other, stream).fingerprint)
    prints.add(plan_of(dataclasses.replace(base, window_size=65), stream).fingerprint)
    prints.add(plan_of(base, stream[::-1]).fingerprint)
    prints.add(plan_of(base, stream[:-1]).fingerprint)
    prints.add(plan_of(base, samples([5, 9, 30, 64, 100, 4])).fingerprint)
    prints.add(plan_of(base, stream, first_window=1).fingerprint)
    assert len(prints) == 1 + len(changed) + 5
    assert plan_of(base, samples(lengths)).fingerprint in prints


def test_every_window_has_an_order_of_its_own() -> None:
    config = WindowConfig(64, BatchingConfig(token_budget=64))
    orders = [
        [batch.sample_ids for batch in plan_of(config, samples([8] * 64), first_window=number)]
        for number in (0, 1, 0)
    ]
    assert orders[0] == orders[2] != orders[1]


def test_a_sample_may_come_twice_in_a_window() -> None:
    buffer = ReplayBuffer(4)
    buffer.extend(samples([3, 5]))
    replayed = buffer.sample(16).samples
    plan = plan_of(WindowConfig(32), [*samples([3, 5]), *replayed])
    names = [name for batch in plan for name in batch.sample_ids]
    assert len(set(names)) == 18
    origins = Counter(name.split("#")[0] for name in names)
    assert origins == Counter(["s0", "s1", *(sample.sample_id for sample in replayed)])
    assert list(plan.samples_by_id.values()) == [*samples([3, 5]), *replayed]


def test_samples_of_the_same_name_are_collated_each_with_its_own_tokens() -> None:
    contents = [(1, 2, 3), (9, 8, 7, 6, 5), (4, 4)]
    stream = [
        StreamSample(tokens, (1,) * len(tokens), meta={"sample_id": name})
        for tokens, name in zip(contents, ["a", "a", "a#2"], strict=True)
    ]
    plan = plan_of(WindowConfig(8), stream)
    found = {
        tuple(row[:length].tolist())
        for batch in plan
        for row, (_, length) in zip(
            collate(plan.samples_by_id, batch).input_ids, batch.spans, strict=True
        )
    }
    assert found == set(contents)
    assert list(plan.samples_by_id) == ["a", "a#3", "a#2"]


def test_the_batches_of_a_window_are_collated_from_its_samples() -> None:
    packed = BatchingConfig.throughput(token_budget=64, overflow_max=64, bucket_edges=(8, 32))
    plan = plan_of(WindowConfig(64, packed), samples([n % 30 + 1 for n in range(50)]))
    tokens = 0
    for batch in plan:
        rows = collate(plan.samples_by_id, batch)
        assert rows.input_ids.size == batch.token_count <= 64
        tokens += rows.num_tokens
    assert tokens == sum(map(len, plan.samples))


def test_samples_without_a_name_are_told_apart() -> None:
    nameless = [StreamSample((n,), (1,)) for n in range(5)]
    plan = plan_of(WindowConfig(8), nameless, first_window=3)
    assert len(plan.samples_by_id) == 5
    assert plan.samples_by_id["3/2"].input_ids == (2,)


def test_a_sample_that_is_too_long_is_told_by_its_name() -> None:
    config = WindowConfig(2, BatchingConfig(token_budget=8))
    with pytest.raises(UserError, match=r"'s1' has 9 tokens; 8 is the most"):
        list(RollingBatchPlanWindow(config).plans(samples([3, 9])))


def test_a_sample_that_is_too_long_does_not_hold_up_the_others() -> None:
    window = RollingBatchPlanWindow(WindowConfig(2, BatchingConfig(token_budget=8)))
    assert window.add(samples([3])[0]) is None
    with pytest.raises(UserError, match="has 9 tokens"):
        window.add(samples([9])[0])
    assert window.waiting == 1
    plan = window.add(samples([4])[0])
    assert plan is not None
    assert [len(sample) for sample in plan.samples] == [3, 4]


def test_windows_of_an_asynchronous_stream_are_the_same() -> None:
    config = WindowConfig(7, BatchingConfig(token_budget=64))
    stream = samples([n % 20 + 1 for n in range(40)])
    expected = [
        plan.fingerprint
        for plan in RollingBatchPlanWindow(config).plans(OfflineDatasetStream(stream))
    ]

    async def gather() -> list[str]:
        window = RollingBatchPlanWindow(config)
        plans = window.async_plans(AsyncOfflineDatasetStream(stream))
        return [plan.fingerprint async for plan in plans]

    assert asyncio.run(gather()) == expected
    assert len(expected) == 6


def test_windows_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="window_size"):
        WindowConfig(0)
    with pytest.raises(ValueError, match="first_window"):
        RollingBatchPlanWindow(first_window=-1)
