"""Which process this is, and where a run stands in its plan."""

from __future__ import annotations

import pytest

from batching import (
    BatchingConfig,
    BatchPlan,
    BatchPlanBuilder,
    CheckpointPosition,
    DistributedConfig,
    interleave_microbatches,
    shard_batch_plan,
)
from query_mutator.base.errors import UserError


def plan_of(count: int) -> BatchPlan:
    lengths = {f"{count} {index}": 10 for index in range(count)}
    return BatchPlanBuilder(lengths, BatchingConfig(10, (), 10)).build()


def test_without_variables_there_is_one_process() -> None:
    config = DistributedConfig.from_env({})

    assert config == DistributedConfig(rank=0, world_size=1, local_rank=0, local_world_size=1)
    assert config.is_main


def test_the_environment_says_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)

    config = DistributedConfig.from_env()

    assert config == DistributedConfig(5, 8, 1, 4)
    assert not config.is_main


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({"RANK": "one"}, "RANK='one', which is no whole number"),
        ({"RANK": "0", "WORLD_SIZE": ""}, "WORLD_SIZE=''"),
        ({"WORLD_SIZE": "4"}, "has WORLD_SIZE and no RANK"),
        ({"WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}, "and no RANK"),
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, "and no LOCAL_RANK"),
        ({"RANK": "4", "WORLD_SIZE": "4"}, "rank 4 is not below world_size 4"),
        ({"RANK": "-1", "WORLD_SIZE": "4"}, "rank -1"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, "world_size 0"),
        (
            {"RANK": "2", "LOCAL_RANK": "2", "WORLD_SIZE": "4"},
            "local_rank 2 is not below local_world_size 1",
        ),
        ({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "8"}, "local_world_size 8 is over world_size 1"),
    ],
)
def test_an_environment_that_cannot_be_is_told(environment: dict[str, str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        DistributedConfig.from_env(environment)


def test_each_process_has_its_shard() -> None:
    plan = plan_of(6)
    own = shard_batch_plan(plan, DistributedConfig(1, 3))

    assert own.fingerprint == plan.shard(1, 3).fingerprint
    assert [b.sample_ids for b in own.iter_epoch()] == [
        plan.epochs[0][index].sample_ids for index in (1, 4)
    ]


def test_plans_take_turns_until_each_has_ended() -> None:
    plans = [plan_of(1), plan_of(3), plan_of(2)]

    assert [index for index, _ in interleave_microbatches(plans)] == [0, 1, 2, 1, 2, 1]
    assert list(interleave_microbatches([])) == []


def test_a_position_goes_on_where_the_run_stopped() -> None:
    plan = plan_of(5)
    position = CheckpointPosition.from_dict(CheckpointPosition(0, 3, global_step=3).to_dict())

    rest = plan.iter_from(position.epoch, position.microbatch_idx)

    assert list(rest) == list(plan.iter_epoch(0))[3:]
    assert CheckpointPosition(0, 3) == CheckpointPosition(0, 3, global_step=0)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"epoch": 0, "microbatch_idx": -1, "global_step": 0},
        {"epoch": 0, "microbatch_idx": "1", "global_step": 0},
        {"epoch": True, "microbatch_idx": 1, "global_step": 0},
        {"epoch": 0, "microbatch_idx": 1, "global_step": 0, "more": 1},
    ],
)
def test_a_position_that_is_none_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"position|must be"):
        CheckpointPosition.from_dict(stored)
