"""Samples of different lengths in batches that never exceed a budget of tokens.

Run it from the repository: python examples/batching/01_basic_batching.py
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import BatchMetrics, BatchShapeHistogram, BucketSpec, TokenBudgetBatchSampler
from batching.generation import ByteTokenizer, encode_texts, read_texts

TOKEN_BUDGET = 4096

TEXTS = Path(__file__).with_name("texts.jsonl")


async def batch_samples() -> None:
    samples = list(encode_texts(read_texts(TEXTS), ByteTokenizer()))
    lengths = {sample.sample_id: len(sample) for sample in samples}
    print(f"{len(lengths)} samples of {min(lengths.values())} to {max(lengths.values())} tokens")

    # Samples of like length share a batch. A sample that is too long for one is an error here;
    # on_overflow="truncate", "split" or "skip" would deal with it, and count it.
    sampler = TokenBudgetBatchSampler(
        lengths, BucketSpec(edges=(128, 256, 512, 1024), overflow_max=2048), TOKEN_BUDGET, seed=42
    )
    shapes, batches = BatchShapeHistogram(), []
    async for batch in sampler.iter_epoch(epoch=0):
        assert batch.token_count <= TOKEN_BUDGET
        shapes.add(batch)
        batches.append(batch)

    for batch in batches[:5]:
        print(
            f"  {batch.batch_size:2} rows × {batch.max_length:4} = {batch.token_count:4} tokens, "
            f"first sample {batch.sample_ids[0]}"
        )
    metrics = BatchMetrics.of_batches(batches)
    print(f"{metrics.num_batches} batches, none over {TOKEN_BUDGET} tokens, padding included")
    print(f"{metrics.efficiency:.1%} of all places hold a token")
    print(f"{shapes.num_shapes} shapes")

    # The same seed and epoch give the same batches; another epoch gives others.
    again = list(sampler.batches(epoch=0))
    print("the same again:", again == batches)
    print("another epoch, other batches:", list(sampler.batches(epoch=1)) != batches)


def main() -> None:
    asyncio.run(batch_samples())


if __name__ == "__main__":
    main()
