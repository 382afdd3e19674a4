"""Samples, buckets, and batches that keep to a budget of tokens."""

from __future__ import annotations

import asyncio
import doctest
import importlib
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching import (
    BatchMetrics,
    BatchShapeHistogram,
    BatchSpec,
    BucketSpec,
    BucketStats,
    OverflowPolicy,
    PadPolicy,
    Sample,
    TokenBudgetBatchSampler,
)
from batching.core.arrays import Shuffler, ranges, stable_order
from batching.core.table import table_of
from query_mutator.base.errors import UserError

bucket_specs = st.builds(
    lambda edges, more, least: BucketSpec(
        tuple(least + edge for edge in sorted(edges)), least + max(edges, default=0) + more, least
    ),
    st.sets(st.integers(0, 60), max_size=4),
    st.integers(1, 30),
    st.integers(1, 5),
)
lengths_by_id = st.dictionaries(st.text(max_size=4), st.integers(0, 150), max_size=40)
policies = st.sampled_from([OverflowPolicy.TRUNCATE, OverflowPolicy.SPLIT, OverflowPolicy.SKIP])


@pytest.mark.parametrize(
    "name",
    ["arrays", "buckets", "forming", "metrics", "overflow", "sampler", "samples", "table"],
)
def test_the_examples_in_the_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"batching.core.{name}")).failed == 0


def test_a_sample_knows_its_length_its_id_and_its_loss_tokens() -> None:
    sample = Sample((1, 2, 3), (0, 1, 1), (0, 0, 1), {"sample_id": "x"})

    assert (len(sample), sample.sample_id, sample.num_loss_tokens) == (3, "x", 2)
    assert Sample((), ()).sample_id == ""


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (((1, 2), (1,)), "loss_mask has 1"),
        (((1, 2), (1, 2)), "only 0 and 1"),
        (((1, 2), (1, 1), (0,)), "segment_ids has 1"),
        (((1, 2), (1, 1), (1, 0)), "may not fall"),
        (((1, 2), (1, 1), (-1, 0)), "marks padding"),
    ],
)
def test_a_sample_that_does_not_fit_together_is_refused(
    fields: tuple[Any, ...], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Sample(*fields)


def test_the_default_buckets_are_those_of_the_documents() -> None:
    spec = BucketSpec.default()

    assert (spec.edges, spec.overflow_max, spec.num_buckets) == ((128, 256, 512, 1024), 2048, 5)
    assert [spec.get_bucket_range(bucket) for bucket in range(5)] == [
        (1, 128), (129, 256), (257, 512), (513, 1024), (1025, 2048)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [((256, 128), 512), ((128, 128), 512), ((128,), 128), ((0,), 5), ((9,), 20, 0)]
)
def test_buckets_that_do_not_ascend_are_refused(arguments: tuple[tuple[int, ...], int]) -> None:
    with pytest.raises(ValueError, match="must"):
        BucketSpec(*arguments)


@given(bucket_specs)
def test_every_length_is_in_the_one_bucket_whose_range_holds_it(spec: BucketSpec) -> None:
    lengths = np.arange(spec.min_length, spec.overflow_max + 1)
    ids = spec.bucket_ids(lengths)

    assert ids.tolist() == [spec.get_bucket_id(length) for length in lengths.tolist()]
    for length, bucket in zip(lengths.tolist(), ids.tolist(), strict=True):
        low, high = spec.get_bucket_range(bucket)
        assert low <= length <= high == spec.get_bucket_max(bucket)


@given(st.lists(st.integers(0, 120)), bucket_specs)
def test_bucket_stats_account_for_every_sample(lengths: list[int], spec: BucketSpec) -> None:
    stats = BucketStats.of(lengths, spec)
    inside = [length for length in lengths if spec.min_length <= length <= spec.overflow_max]

    assert stats.num_samples + stats.too_short + stats.too_long == len(lengths)
    assert (stats.num_samples, stats.num_tokens) == (len(inside), sum(inside))
    assert 0 < stats.overall_efficiency <= 1


@given(st.integers(0, 300), st.integers(0, 2**40))
def test_a_shuffled_order_holds_every_number_once(count: int, seed: int) -> None:
    assert sorted(Shuffler(seed).order(count).tolist()) == list(range(count))


@given(st.lists(st.integers(0, 9)), st.sampled_from([1, 2**20, 2**58]))
def test_a_stable_order_keeps_equal_keys_in_their_order(keys: list[int], times: int) -> None:
    expected = sorted(range(len(keys)), key=lambda index: keys[index])

    assert stable_order(np.array(keys, np.int64) * times).tolist() == expected


def test_a_shuffled_order_is_the_same_on_every_machine() -> None:
    assert Shuffler(42).order(10).tolist() == [4, 8, 1, 9, 3, 6, 0, 7, 2, 5]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5))))
def test_ranges_stand_one_after_the_other(pairs: list[tuple[int, int]]) -> None:
    expected = [value for start, size in pairs for value in range(start, start + size)]

    assert ranges([a for a, _ in pairs], [b for _, b in pairs]).tolist() == expected


@given(
    lengths_by_id, bucket_specs, st.integers(1, 200), policies, st.sampled_from(PadPolicy),
    st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_every_token_comes_once_or_is_counted_and_no_batch_is_over_budget(
    lengths: dict[str, int],
    spec: BucketSpec,
    budget: int,
    policy: OverflowPolicy,
    pad: PadPolicy,
    drop_last: bool,
    seed: int,
) -> None:
    sampler = TokenBudgetBatchSampler(lengths, spec, budget, seed, drop_last, policy, pad)
    batches = list(sampler.batches(epoch=seed % 3))
    counts, limit = sampler.counts, min(budget, spec.overflow_max)

    tokens = Counter[tuple[str, int]]()
    for batch in batches:
        assert batch.token_count == batch.batch_size * batch.max_length <= budget
        for name, (start, length) in zip(batch.sample_ids, batch.spans, strict=True):
            assert 0 < length <= batch.max_length
            assert start + length <= lengths[name]
            assert spec.get_bucket_id(length) == batch.bucket_id
            tokens.update((name, place) for place in range(start, start + length))
        if pad is PadPolicy.PAD_TO_BUCKET:
            assert batch.max_length == min(spec.get_bucket_max(batch.bucket_id), budget)
        else:
            assert batch.max_length == max(length for _, length in batch.spans)

    assert set(tokens.values()) <= {1}
    assert tokens.total() + counts.lost_tokens == sum(lengths.values())
    long = [n for n in lengths if lengths[n] > limit and lengths[n] >= spec.min_length]
    left_out = {n for n in lengths if lengths[n] < spec.min_length}
    assert counts.too_short == len(left_out)
    assert [counts.skipped, counts.truncated, counts.split] == [
        len(long) if policy is kind else 0
        for kind in (OverflowPolicy.SKIP, OverflowPolicy.TRUNCATE, OverflowPolicy.SPLIT)
    ]
    if not drop_last:
        left_out |= set(long) if policy is OverflowPolicy.SKIP else set()
        assert {name for batch in batches for name in batch.sample_ids} == set(lengths) - left_out
        assert counts.dropped == 0


@given(st.lists(st.integers(1, 60), min_size=1), st.integers(60, 400), st.sampled_from(PadPolicy))
def test_only_batches_that_are_not_full_are_dropped(
    lengths: list[int], budget: int, pad: PadPolicy
) -> None:
    spec = BucketSpec((20, 40), 60)
    arguments = (np.array(lengths), spec, budget, 1)
    kept = list(TokenBudgetBatchSampler(*arguments, drop_last=False, pad_policy=pad).batches())
    sampler = TokenBudgetBatchSampler(*arguments, drop_last=True, pad_policy=pad)
    left = set(sampler.batches())

    dropped = [batch for batch in kept if batch not in left]
    assert left <= set(kept)
    assert len({batch.bucket_id for batch in dropped}) == len(dropped)
    assert all(batch.token_count + batch.max_length <= budget for batch in dropped)
    assert sampler.counts.dropped == sum(batch.batch_size for batch in dropped)
    assert sampler.counts.lost_tokens == sum(batch.real_tokens for batch in dropped)


def test_a_sample_longer_than_the_budget_is_refused_unless_told_what_to_do() -> None:
    with pytest.raises(UserError, match=r"'long' has 50 tokens; 40 is the most \(1 of 2") as error:
        TokenBudgetBatchSampler({"a": 3, "long": 50}, BucketSpec((8,), 64), token_budget=40)

    assert "truncate, split or skip" in str(error.value)


@pytest.mark.parametrize(
    ("policy", "spans"),
    [
        ("truncate", {("long", 0, 40), ("a", 0, 3)}),
        ("split", {("long", 0, 40), ("long", 40, 40), ("long", 80, 20), ("a", 0, 3)}),
        ("skip", {("a", 0, 3)}),
    ],
)
def test_a_sample_that_is_too_long_follows_the_policy(
    policy: str, spans: set[tuple[str, int, int]]
) -> None:
    sampler = TokenBudgetBatchSampler(
        {"a": 3, "long": 100}, BucketSpec((8,), 64), 40, on_overflow=policy
    )
    entries = {entry for batch in sampler.batches() for row in batch.row_entries() for entry in row}

    assert entries == spans


def test_async_iteration_gives_the_same_batches_as_the_plain_one() -> None:
    sampler = TokenBudgetBatchSampler(np.arange(1, 100), BucketSpec((16, 64), 128), 256)

    async def collected() -> list[BatchSpec]:
        return [batch async for batch in sampler.iter_epoch(epoch=3)]

    assert asyncio.run(collected()) == list(sampler.batches(epoch=3))


def test_epochs_differ_in_order_and_repeat_exactly() -> None:
    lengths = {f"s{index}": 1 + index * 7 % 100 for index in range(300)}
    first = TokenBudgetBatchSampler(lengths, BucketSpec((16, 64), 128), 512, seed=5)
    second = TokenBudgetBatchSampler(lengths, BucketSpec((16, 64), 128), 512, seed=6)

    assert list(first.batches(0)) == list(first.batches(0))
    assert list(first.batches(0)) != list(first.batches(1))
    assert list(first.batches(1)) == list(second.batches(0))
    partners = [{frozenset(batch.sample_ids) for batch in first.batches(e)} for e in (0, 1)]
    assert partners[0] != partners[1]


def test_batches_of_like_lengths_pad_little() -> None:
    random.seed(0)
    lengths = np.array([int(random.lognormvariate(5.4, 0.9)) % 2047 + 1 for _ in range(20_000)])
    sampler = TokenBudgetBatchSampler(lengths, BucketSpec.default(), 16_384)

    metrics = BatchMetrics.of(sampler.table())

    assert metrics.efficiency > 0.97
    assert metrics.total_tokens / metrics.num_batches > 0.9 * 16_384


def test_metrics_are_the_sums_over_the_batches() -> None:
    sampler = TokenBudgetBatchSampler(
        {"a": 3, "b": 8, "c": 30, "long": 99, "none": 0}, BucketSpec((8,), 64), 64,
        on_overflow="skip", pad_policy="pad_to_bucket",
    )  # fmt: skip
    table = sampler.table()
    metrics = BatchMetrics.of(table, sampler.counts, loss_tokens=20)

    assert (metrics.num_batches, metrics.num_rows, metrics.num_samples) == (2, 3, 3)
    assert (metrics.real_tokens, metrics.total_tokens) == (41, 80)
    assert metrics.efficiency == pytest.approx(41 / 80)
    assert metrics.padding_waste == pytest.approx(39 / 80)
    assert metrics.loss_efficiency == pytest.approx(20 / 80)
    assert metrics.avg_batch_size == pytest.approx(1.5)
    assert metrics.skip_rate == pytest.approx(2 / 5)
    assert BatchMetrics.of_batches(table.specs(sampler.ids)) == BatchMetrics.of(table)
    assert (metrics + metrics).total_tokens == 160


def test_the_shape_histogram_counts_rows_and_widths() -> None:
    sampler = TokenBudgetBatchSampler(
        np.array([3, 8, 7, 30, 20]), BucketSpec((8,), 64), 64, pad_policy="pad_to_bucket"
    )
    table = sampler.table()
    shapes = BatchShapeHistogram.of(table)
    one_by_one = BatchShapeHistogram()
    for batch in table.specs(sampler.ids):
        one_by_one.add(batch)

    assert shapes.most_common() == [((1, 64), 2), ((3, 8), 1)]
    assert shapes == one_by_one
    assert (shapes.num_shapes, shapes.num_batches) == (2, 3)


@given(lengths_by_id, st.integers(1, 200))
def test_a_table_and_its_batches_say_the_same(lengths: dict[str, int], budget: int) -> None:
    sampler = TokenBudgetBatchSampler(lengths, BucketSpec((9, 30), 80), budget, on_overflow="split")
    batches = list(sampler.batches())
    table, ids = table_of(batches)

    assert list(table.specs(ids)) == batches
    assert table.take(range(len(batches)))
    assert [b.real_tokens for b in batches] == [
        sum(length for row in b.row_entries() for _, _, length in row) for b in batches
    ]


@pytest.mark.parametrize(
    "wrong", [{"rows": (1,)}, {"spans": ((0, 1),)}, {"token_count": 17}, {"max_length": 9}]
)
def test_a_batch_that_does_not_fit_together_is_refused(wrong: dict[str, object]) -> None:
    fields = {"sample_ids": ("a", "b"), "bucket_id": 0, "max_length": 8, "token_count": 16}

    assert BatchSpec(**fields).batch_size == 2  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"rows|spans"):
        BatchSpec(**(fields | wrong))  # type: ignore[arg-type]


def test_two_samples_may_not_share_an_id() -> None:
    with pytest.raises(ValueError, match="same id"):
        TokenBudgetBatchSampler((["a", "a"], [1, 2]), BucketSpec((8,), 64), 64)


@pytest.mark.parametrize("tokens", [(1.5,), (-1,), (2**31,), ("a",)])
def test_a_token_that_is_none_is_refused(tokens: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="token"):
        Sample(tokens, (1,))


def test_what_a_batch_without_spans_holds_is_not_guessed() -> None:
    batch = BatchSpec(("a",), bucket_id=0, max_length=8, token_count=8)

    with pytest.raises(ValueError, match="without spans"):
        BatchMetrics.of_batches([batch])
