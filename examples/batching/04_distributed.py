"""One plan on several ranks: every rank has as many steps, and no sample comes twice.

Run it from the repository: python examples/batching/04_distributed.py
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import (
    BatchingConfig,
    BatchPlanBuilder,
    CheckpointPosition,
    DistributedConfig,
    interleave_microbatches,
    shard_batch_plan,
)
from batching.generation import ByteTokenizer, measure_texts, read_texts

WORLD_SIZE = 4

TEXTS = Path(__file__).with_name("texts.jsonl")


def main() -> None:
    lengths = dict(measure_texts(read_texts(TEXTS), ByteTokenizer()))
    plan = BatchPlanBuilder(lengths, BatchingConfig(token_budget=4096)).build(num_epochs=1)
    print(f"{plan.num_batches} batches for {WORLD_SIZE} ranks")

    # In a training script the environment tells the rank: torchrun sets it.
    shards = []
    for rank in range(WORLD_SIZE):
        environment = {"RANK": str(rank), "WORLD_SIZE": str(WORLD_SIZE)}
        mine = shard_batch_plan(plan, DistributedConfig.from_env(environment))
        shards.append(mine)
        print(f"  rank {rank}: {mine.num_batches} steps, {mine.metrics.num_samples} samples")

    seen = Counter(
        name for shard in shards for batch in shard.iter_epoch(0) for name in batch.sample_ids
    )
    print("every rank has as many steps:", len({shard.num_batches for shard in shards}) == 1)
    print("every sample once:", seen == Counter(dict.fromkeys(lengths, 1)))
    # What evened it out: batches of several rows were cut in two.
    print(f"batches that cutting added: {shards[0].epochs[0].shard_counts.split}")

    # Gradient accumulation on one machine: the shards take turns.
    turns = [rank for rank, _ in interleave_microbatches(shards)]
    print("the first turns:", turns[: 2 * WORLD_SIZE])

    # What a checkpoint stores, and how a rank goes on from it.
    position = CheckpointPosition(epoch=0, microbatch_idx=5, global_step=5)
    stored = position.to_dict()
    position = CheckpointPosition.from_dict(stored)
    left = list(shards[0].iter_from(position.epoch, position.microbatch_idx))
    print(f"rank 0 goes on at {stored}: {len(left)} steps are left")


if __name__ == "__main__":
    main()
