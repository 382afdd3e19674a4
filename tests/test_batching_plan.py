"""Plans: complete, repeatable, shared out evenly, and never two with one fingerprint."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching import (
    BatchingConfig,
    BatchPlan,
    BatchPlanBuilder,
    BatchSpec,
    OverflowPolicy,
    PackingConfig,
    PackingMode,
    PadPolicy,
    RemainderPolicy,
    compute_batch_fingerprint,
    interleave_microbatches,
    verify,
)
from query_mutator.base.errors import UserError
from tests.nightly import examples

LENGTHS = {f"sample {index}": 1 + index * 37 % 90 for index in range(200)}
CONFIG = BatchingConfig(token_budget=256, bucket_edges=(16, 48), overflow_max=96)
GOLDEN = "ddf0addb234a16736a7184c4a80278ce3b14e822894f44f6a72d67d122245f55"
"""Changes only when plans do: then `plan.VERSION` must rise as well."""


@st.composite
def configs(draw: st.DrawFn) -> BatchingConfig:
    budget, overflow_max = draw(st.integers(10, 300)), draw(st.integers(21, 120))
    longest = st.integers(1, min(budget, overflow_max))
    packing = st.builds(PackingConfig, st.sampled_from(PackingMode), longest)
    policies = [OverflowPolicy.TRUNCATE, OverflowPolicy.SPLIT, OverflowPolicy.SKIP]
    return BatchingConfig(
        token_budget=budget,
        bucket_edges=draw(st.sampled_from([(), (5,), (8, 20)])),
        overflow_max=overflow_max,
        min_length=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 99)),
        shuffle=draw(st.booleans()),
        drop_last=draw(st.booleans()),
        on_overflow=draw(st.sampled_from(policies)),
        pad_policy=draw(st.sampled_from(PadPolicy)),
        packing=draw(st.none() | packing),
    )


lengths_by_id = st.dictionaries(st.text(max_size=4), st.integers(0, 150), max_size=30)
plans = st.builds(
    lambda lengths, config, epochs: BatchPlanBuilder(lengths, config).build(epochs),
    lengths_by_id,
    configs(),
    st.integers(1, 3),
)


def tokens_of(batches: list[BatchSpec]) -> Counter[tuple[str, int]]:
    """How often each token of each sample comes."""
    return Counter(
        (name, place)
        for batch in batches
        for name, (start, length) in zip(batch.sample_ids, batch.spans, strict=True)
        for place in range(start, start + length)
    )


@given(lengths_by_id, configs(), st.integers(1, 3))
def test_every_token_comes_once_an_epoch_or_is_counted_and_no_batch_is_over_budget(
    lengths: dict[str, int], config: BatchingConfig, num_epochs: int
) -> None:
    plan = BatchPlanBuilder(lengths, config).build(num_epochs)

    assert plan.num_epochs == num_epochs
    for epoch in plan.epochs:
        batches = list(plan.iter_epoch(epoch.epoch))
        tokens = tokens_of(batches)
        assert set(tokens.values()) <= {1}
        assert tokens.total() + epoch.counts.lost_tokens == sum(lengths.values())
        for batch in batches:
            assert batch.token_count == batch.batch_size * batch.max_length <= config.token_budget
            for row in batch.row_entries():
                assert sum(length for _, _, length in row) <= batch.max_length
                assert config.packing or len(row) == 1
    assert verify(plan, lengths) == []


@given(plans, st.data())
def test_iter_from_is_the_tail_of_a_full_pass(plan: BatchPlan, data: st.DataObject) -> None:
    epoch = data.draw(st.integers(0, plan.num_epochs - 1))
    full = list(plan.iter_epoch(epoch))
    index = data.draw(st.integers(0, len(full)))

    assert list(plan.iter_from(epoch, index)) == full[index:]
    assert [plan.epochs[epoch][i] for i in range(index)] == full[:index]


@given(plans, st.integers(1, 5), st.sampled_from(RemainderPolicy))
def test_shards_have_equal_steps_and_what_is_not_shared_evenly_is_counted(
    plan: BatchPlan, world_size: int, remainder: RemainderPolicy
) -> None:
    if remainder is RemainderPolicy.DROP and any(
        0 < len(epoch) < world_size for epoch in plan.epochs
    ):
        with pytest.raises(UserError, match="dropping what is over leaves none"):
            plan.shard(0, world_size, remainder)
        return
    shards = [plan.shard(rank, world_size, remainder) for rank in range(world_size)]

    for epoch in plan.epochs:
        parts = [shard.epochs[epoch.epoch] for shard in shards]
        counts = parts[0].shard_counts
        assert {len(part) for part in parts} == {len(parts[0])}
        assert {part.shard_counts for part in parts} == {counts}
        assert len(parts[0]) * world_size == (
            len(epoch) + counts.split + counts.repeated - counts.dropped
        )
        dealt = tokens_of([batch for part in parts for batch in part])
        whole = tokens_of(list(epoch))
        if counts.repeated:
            assert dealt.keys() == whole.keys()
            assert dealt.total() - whole.total() == sum(
                epoch[index % len(epoch)].real_tokens for index in range(counts.repeated)
            )
        elif counts.dropped:
            last = [epoch[index] for index in range(len(epoch) - counts.dropped, len(epoch))]
            assert dealt == whole - tokens_of(last)
        else:
            assert dealt == whole
        for part in parts:
            assert all(b.token_count <= plan.meta.config.token_budget for b in part)
    assert len({shard.fingerprint for shard in shards} | {plan.fingerprint}) == world_size + 1


@given(plans, st.integers(1, 5))
def test_shards_are_disjoint_and_complete_wherever_there_are_rows_enough(
    plan: BatchPlan, world_size: int
) -> None:
    shards = [plan.shard(rank, world_size) for rank in range(world_size)]

    for epoch in plan.epochs:
        missing = -len(epoch) % world_size
        counts = shards[0].epochs[epoch.epoch].shard_counts
        if epoch.table.num_rows >= len(epoch) + missing:
            assert (counts.split, counts.repeated, counts.dropped) == (missing, 0, 0)
        else:
            assert (counts.split, counts.repeated, counts.dropped) == (0, missing, 0)


def test_the_shards_of_a_plan_in_turn_are_the_plan() -> None:
    plan = BatchPlanBuilder(LENGTHS, CONFIG).build()
    even = plan.shard(0, 1, "drop").num_batches // 3 * 3
    shards = [plan.shard(rank, 3, RemainderPolicy.DROP) for rank in range(3)]

    dealt = list(interleave_microbatches(shards, epoch=0))

    assert [batch for _, batch in dealt] == list(plan.iter_epoch(0))[:even]
    assert [rank for rank, _ in dealt[:6]] == [0, 1, 2, 0, 1, 2]


def test_a_shard_is_not_sharded_again() -> None:
    shard = BatchPlanBuilder(LENGTHS, CONFIG).build().shard(0, 2)

    with pytest.raises(ValueError, match="a shard already"):
        shard.shard(0, 2)


@pytest.mark.parametrize(("rank", "world_size"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_that_is_not_there_is_refused(rank: int, world_size: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        BatchPlanBuilder(LENGTHS, CONFIG).build().shard(rank, world_size)


@given(lengths_by_id, configs(), st.integers(1, 2), st.integers(1, 3))
@examples(60)
def test_a_plan_rebuilds_to_the_same_fingerprint(
    lengths: dict[str, int], config: BatchingConfig, num_epochs: int, world_size: int
) -> None:
    plan = BatchPlanBuilder(lengths, config, "data", "tokenizer").build(num_epochs)
    shard = plan.shard(world_size - 1, world_size)

    for one in (plan, shard):
        rebuilt = BatchPlanBuilder.from_plan(one, lengths).build()
        assert rebuilt.fingerprint == one.fingerprint
        assert [list(epoch) for epoch in rebuilt.epochs] == [list(epoch) for epoch in one.epochs]


OTHER_SETTINGS: list[dict[str, Any]] = [
    {"token_budget": 257},
    {"bucket_edges": (16, 47)},
    {"overflow_max": 97},
    {"min_length": 2},
    {"seed": 43},
    {"shuffle": False},
    {"drop_last": True},
    {"on_overflow": OverflowPolicy.SKIP},
    {"pad_policy": PadPolicy.PAD_TO_BUCKET},
    {"packing": PackingConfig(max_length=96)},
    {"packing": PackingConfig(max_length=95)},
    {"packing": PackingConfig(PackingMode.GREEDY, max_length=96)},
]


def test_the_fingerprint_changes_with_every_setting() -> None:
    def fingerprint(config: BatchingConfig = CONFIG, epochs: int = 1, *hashes: str) -> str:
        return BatchPlanBuilder(LENGTHS, config, *hashes).build(epochs).fingerprint

    fingerprints = [fingerprint(replace(CONFIG, **other)) for other in OTHER_SETTINGS]
    fingerprints += [
        fingerprint(),
        fingerprint(CONFIG, 2),
        fingerprint(CONFIG, 1, "x"),
        fingerprint(CONFIG, 1, "", "x"),
    ]

    assert {name for other in OTHER_SETTINGS for name in other} == set(CONFIG.to_dict())
    assert len(set(fingerprints)) == len(fingerprints)
    assert fingerprint() == fingerprint()


def test_settings_count_even_where_they_change_no_batch() -> None:
    lengths = {"a": 5, "b": 5}
    fingerprints = {
        BatchPlanBuilder(lengths, replace(CONFIG, **other)).build().fingerprint
        for other in OTHER_SETTINGS
    }

    assert len(fingerprints) == len(OTHER_SETTINGS)


@given(lengths_by_id.filter(bool), st.data())
def test_the_fingerprint_changes_with_any_id_any_length_and_the_order(
    lengths: dict[str, int], data: st.DataObject
) -> None:
    config = replace(CONFIG, on_overflow=OverflowPolicy.SKIP)
    name = data.draw(st.sampled_from(sorted(lengths)))
    others = [
        lengths | {name: lengths[name] + 1},
        {key: value for key, value in lengths.items() if key != name},
        {key + "x" if key == name else key: value for key, value in lengths.items()},
        {key + "\0": value for key, value in lengths.items()},
        {name: lengths[name], **{k: v for k, v in reversed(lengths.items()) if k != name}},
    ]
    others = [other for other in others if list(other.items()) != list(lengths.items())]
    before = BatchPlanBuilder(lengths, config).build().fingerprint

    for other in others:
        assert BatchPlanBuilder(other, config).build().fingerprint != before


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([("a", "b")], [("ab",)]),
        ([("a,b", "c")], [("a", "b,c")]),
        ([("a", "b")], [("b", "a")]),
        ([("a",), ("b",)], [("b",), ("a",)]),
        ([("a",), ("b",)], [("a", "b")]),
        ([("", "a")], [("a", "")]),
        ([("é",)], [("e\u0301",)]),
        ([("\ud800",)], [("?",)]),
    ],
)
def test_batches_that_differ_have_different_fingerprints(
    left: list[tuple[str, ...]], right: list[tuple[str, ...]]
) -> None:
    def batches(ids: list[tuple[str, ...]]) -> list[BatchSpec]:
        return [BatchSpec(names, 0, 8, 8 * len(names)) for names in ids]

    assert compute_batch_fingerprint(batches(left)) == compute_batch_fingerprint(batches(left))
    assert compute_batch_fingerprint(batches(left)) != compute_batch_fingerprint(batches(right))


@pytest.mark.parametrize(
    "change",
    [
        {"bucket_id": 1},
        {"max_length": 9, "token_count": 18},
        {"spans": ((0, 3), (0, 4))},
        {"spans": ((1, 3), (0, 3))},
        {"rows": (2,), "token_count": 8},
    ],
)
def test_the_fingerprint_covers_every_field_of_a_batch(change: dict[str, Any]) -> None:
    batch = BatchSpec(("a", "b"), 0, 8, 16, spans=((0, 3), (0, 3)), rows=(1, 1))

    changed = compute_batch_fingerprint([replace(batch, **change)])

    assert changed != compute_batch_fingerprint([batch])


@given(plans)
def test_the_digest_of_an_epoch_is_the_fingerprint_of_its_batches(plan: BatchPlan) -> None:
    for epoch in plan.epochs:
        assert compute_batch_fingerprint(epoch) == epoch.digest


def test_a_plan_is_the_same_on_every_machine() -> None:
    plan = BatchPlanBuilder(LENGTHS, replace(CONFIG, packing=PackingConfig(max_length=96))).build()

    assert plan.fingerprint == GOLDEN


def test_predictable_plans_have_one_full_shape_per_bucket_and_one_order() -> None:
    plan = BatchPlanBuilder(LENGTHS, BatchingConfig.predictable(1024, (16, 48), 96)).build(2)
    widths = {batch.max_length for batch in plan.iter_epoch(0)}

    assert widths == {16, 48, 96}
    assert plan.epochs[0].digest == plan.epochs[1].digest
    assert next(plan.iter_epoch(0)).sample_ids[0] == "sample 0"


def test_throughput_plans_hardly_pad_and_mix_samples_anew_in_each_epoch() -> None:
    plan = BatchPlanBuilder(LENGTHS, BatchingConfig.throughput(1024, (16, 48), 96)).build(2)
    rows = [
        {frozenset(row) for batch in plan.iter_epoch(epoch) for row in batch.row_entries()}
        for epoch in (0, 1)
    ]

    assert plan.metrics.efficiency > 0.98
    assert rows[0] != rows[1]


def test_packing_over_the_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="packed rows of 300 tokens are over 256"):
        BatchingConfig(token_budget=256, packing=PackingConfig(max_length=300))


def test_too_long_samples_are_refused_by_default() -> None:
    with pytest.raises(UserError, match="sample 'long' has 500 tokens; 96 is the most"):
        BatchPlanBuilder({"long": 500}, CONFIG).build()


def test_verify_says_how_a_plan_and_lengths_differ() -> None:
    plan = BatchPlanBuilder(LENGTHS, CONFIG).build()
    fewer = dict(list(LENGTHS.items())[1:])
    longer = LENGTHS | {"sample 0": 2}
    too_long = LENGTHS | {"sample 0": 999}

    assert verify(plan, LENGTHS) == []
    assert "built from 200 samples, and these are 199" in verify(plan, fewer)
    assert any("epoch 0:" in problem for problem in verify(plan, fewer))
    assert any("other lengths" in problem for problem in verify(plan, longer))
    assert any("999 tokens" in problem for problem in verify(plan, too_long))


def test_verify_finds_what_breaks_the_rules() -> None:
    plan = BatchPlanBuilder(LENGTHS, CONFIG).build()
    table = plan.epochs[0].table
    broken = {
        "over the budget of 256": replace(table, width=table.width * 10),
        "narrower than one of its rows": replace(table, width=np.ones_like(table.width)),
        "come twice": table.take([0, 0]),
    }

    for complaint, other in broken.items():
        epoch = replace(plan.epochs[0], table=other)
        problems = verify(replace(plan, epochs=(epoch,)))
        assert any(complaint in problem for problem in problems), (complaint, problems)


def test_an_epoch_or_batch_that_is_not_there_is_refused() -> None:
    plan = BatchPlanBuilder(LENGTHS, CONFIG).build()

    with pytest.raises(ValueError, match="no epoch 1"):
        plan.iter_epoch(1)
    with pytest.raises(ValueError, match="none at"):
        plan.iter_from(0, len(plan.epochs[0]) + 1)
    with pytest.raises(IndexError):
        plan.epochs[0][len(plan.epochs[0])]
    with pytest.raises(ValueError, match="num_epochs"):
        BatchPlanBuilder(LENGTHS, CONFIG).build(0)


@pytest.mark.parametrize("mode", ["greedy", "first_fit"])
def test_rows_follow_the_order_of_the_samples_in_shuffled_plans_too(mode: str) -> None:
    lengths = {f"{index:02}": 4 for index in range(20)}
    config = BatchingConfig(16, (), 16, packing=PackingConfig(PackingMode(mode), 8))
    plan = BatchPlanBuilder(lengths, config).build(2)
    rows = [
        [tuple(int(name) for name, _, _ in row) for batch in epoch for row in batch.row_entries()]
        for epoch in plan.epochs
    ]

    assert rows[0] != rows[1]
    assert sorted(rows[0]) == sorted(rows[1]) == [(2 * row, 2 * row + 1) for row in range(10)]


def test_a_shard_does_not_count_what_all_ranks_left_out() -> None:
    plan = BatchPlanBuilder(
        {"a": 4, "b": 4, "long": 99}, BatchingConfig(8, (), 8, on_overflow=OverflowPolicy.SKIP)
    ).build()

    assert plan.metrics.skipped_samples == 1
    assert plan.shard(0, 2).metrics.skipped_samples is None
    assert plan.shard(0, 2).metrics.skip_rate is None
    assert plan.metrics.to_dict()["loss_efficiency"] is None


@pytest.mark.parametrize(
    "settings_given",
    [{"seed": 1.5}, {"token_budget": 64.5}, {"overflow_max": "9"}, {"bucket_edges": (1.5,)}],
)
def test_a_setting_that_is_no_whole_number_is_refused(settings_given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        BatchingConfig(**settings_given)


def test_numbers_of_numpy_are_settings_like_others() -> None:
    config = BatchingConfig(seed=np.int64(4), overflow_max=np.int64(4096))  # type: ignore[arg-type]
    plan = BatchPlanBuilder({"a": 3}, config).build()

    same = BatchPlanBuilder({"a": 3}, BatchingConfig(seed=4, overflow_max=4096)).build()
    assert plan.fingerprint == same.fingerprint


@pytest.mark.parametrize("lengths", [{"a": 3.7}, {1: 3}, ([1], [3])])
def test_lengths_and_ids_of_the_wrong_kind_are_refused(lengths: Any) -> None:
    with pytest.raises(ValueError, match=r"whole numbers|ids must be texts"):
        BatchPlanBuilder(lengths, BatchingConfig())
