"""Samples as they come, filtered, and batched a window at a time.

Run it from the repository: python examples/batching/07_streaming.py
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import BatchingConfig, Sample
from batching.generation import ByteTokenizer, encode_texts, read_texts
from batching.streaming import (
    AsyncOfflineDatasetStream,
    OfflineDatasetStream,
    PipelineStream,
    RollingBatchPlanWindow,
    WindowConfig,
    by_length,
)

TEXTS = Path(__file__).with_name("texts.jsonl")


def main() -> None:
    samples = list(encode_texts(read_texts(TEXTS), ByteTokenizer()))

    # A stream, shuffled for each epoch; a filter counts what it refuses.
    stream = PipelineStream(OfflineDatasetStream(samples, num_epochs=2), by_length(most=1024))
    config = WindowConfig(window_size=128, batching=BatchingConfig.throughput(token_budget=2048))
    window = RollingBatchPlanWindow(config)
    for plan in window.plans(stream):
        print(
            f"window {plan.index}: {len(plan.samples)} samples in {len(plan)} batches, "
            f"{plan.metrics.efficiency:.1%} of their places hold a token"
        )
    print(f"refused: {dict(stream.metrics.dropped)}")
    same = window.metrics.num_samples == stream.metrics.samples
    print(f"in all: {window.metrics.num_samples} samples, none lost: {same}")

    # A batch has its samples at hand, whatever came before is forgotten.
    first = next(RollingBatchPlanWindow(config).plans(OfflineDatasetStream(samples)))
    print(f"batch 0 of the first window: {len(first.samples_of(0))} samples")

    # A stream that was stopped goes on where it was.
    stopped = OfflineDatasetStream(samples)
    before = [next(stopped).sample_id for _ in range(100)]
    rest = [s.sample_id for s in OfflineDatasetStream(samples, start=stopped.position)]
    print(f"stopped at {stopped.position}, {len(rest)} to go")
    whole = [sample.sample_id for sample in OfflineDatasetStream(samples)]
    print("the same as without a stop:", before + rest == whole)
    asyncio.run(read_asynchronously(samples, window_size=140))


async def read_asynchronously(samples: list[Sample], window_size: int) -> None:
    window = RollingBatchPlanWindow(WindowConfig(window_size))
    stream = AsyncOfflineDatasetStream(samples)
    windows = [plan async for plan in window.async_plans(stream)]
    print(f"asynchronously: {len(windows)} windows, {window.metrics.num_batches} batches")


if __name__ == "__main__":
    main()
