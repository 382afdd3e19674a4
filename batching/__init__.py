"""Token-budget batching: samples to batches that waste little, in an order anyone can repeat."""

from batching.core import (
    BatchMetrics,
    BatchShapeHistogram,
    BatchSpec,
    BatchTable,
    BucketSpec,
    BucketStats,
    OverflowCounts,
    OverflowPolicy,
    PadPolicy,
    Sample,
    TokenBudgetBatchSampler,
)

__all__ = [
    "BatchMetrics",
    "BatchShapeHistogram",
    "BatchSpec",
    "BatchTable",
    "BucketSpec",
    "BucketStats",
    "OverflowCounts",
    "OverflowPolicy",
    "PadPolicy",
    "Sample",
    "TokenBudgetBatchSampler",
]
