"""Samples, buckets, and batches that keep to a budget of tokens."""

from batching.core.arrays import IntArray
from batching.core.buckets import BucketSpec, BucketStats
from batching.core.forming import Forming, PadPolicy, form_batches
from batching.core.metrics import BatchMetrics, BatchShapeHistogram
from batching.core.overflow import OverflowCounts, OverflowPolicy, Spans, fit_lengths
from batching.core.sampler import Lengths, TokenBudgetBatchSampler, ids_and_lengths
from batching.core.samples import Sample
from batching.core.table import BatchSpec, BatchTable, Span

__all__ = [
    "BatchMetrics",
    "BatchShapeHistogram",
    "BatchSpec",
    "BatchTable",
    "BucketSpec",
    "BucketStats",
    "Forming",
    "IntArray",
    "Lengths",
    "OverflowCounts",
    "OverflowPolicy",
    "PadPolicy",
    "Sample",
    "Span",
    "Spans",
    "TokenBudgetBatchSampler",
    "fit_lengths",
    "form_batches",
    "ids_and_lengths",
]
