"""Plans: batches that anyone can build again, shard, save and take up in the middle."""

from batching.core import PadPolicy
from batching.planning.bins import Bins, PackingMode, lower_bound, pack_lengths
from batching.planning.builder import BatchPlanBuilder
from batching.planning.config import BatchingConfig, PackingConfig
from batching.planning.distributed import (
    CheckpointPosition,
    DistributedConfig,
    interleave_microbatches,
    shard_batch_plan,
)
from batching.planning.epochs import EpochPlan, PlanMeta
from batching.planning.fingerprint import compute_batch_fingerprint
from batching.planning.packing import (
    PADDING_SEGMENT,
    PackedArrays,
    PackedSequence,
    PackingMetrics,
    create_segment_attention_mask,
    pack_arrays,
    pack_row,
    pack_sequences,
)
from batching.planning.plan import BatchPlan, save_shards
from batching.planning.sharding import RemainderPolicy, Shard, ShardCounts
from batching.planning.verify import other_lengths, verify

__all__ = [
    "PADDING_SEGMENT",
    "BatchPlan",
    "BatchPlanBuilder",
    "BatchingConfig",
    "Bins",
    "CheckpointPosition",
    "DistributedConfig",
    "EpochPlan",
    "PackedArrays",
    "PackedSequence",
    "PackingConfig",
    "PackingMetrics",
    "PackingMode",
    "PadPolicy",
    "PlanMeta",
    "RemainderPolicy",
    "Shard",
    "ShardCounts",
    "compute_batch_fingerprint",
    "create_segment_attention_mask",
    "interleave_microbatches",
    "lower_bound",
    "other_lengths",
    "pack_arrays",
    "pack_lengths",
    "pack_row",
    "pack_sequences",
    "save_shards",
    "shard_batch_plan",
    "verify",
]
