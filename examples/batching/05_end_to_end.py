"""From texts to batches on disk, and through them as a training loop would go.

Run it from the repository: python examples/batching/05_end_to_end.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import BatchingConfig, BatchPlanBuilder
from batching.generation import (
    BatchReader,
    LengthCache,
    SampleStore,
    dataset_hash,
    encode_texts,
    load_tokenizer,
    measure_texts,
    read_texts,
    write_batches,
)

TEXTS = Path(__file__).with_name("texts.jsonl")


def main() -> None:
    tokenizer = load_tokenizer("bytes")  # or "embedded", a tokenizer.json, a .gguf
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)

        # 1. Every text is tokenised once to measure it; the lengths stay on disk.
        cache = LengthCache.create(
            work / "lengths.jsonl", tokenizer.tokenizer_hash, dataset_hash=dataset_hash(TEXTS)
        )
        with cache:
            cache.add_many(measure_texts(read_texts(TEXTS), tokenizer))
        print(f"1. {len(cache)} lengths")

        # 2. The plan needs only lengths.
        config = BatchingConfig.throughput(token_budget=4096)
        builder = BatchPlanBuilder(
            cache.lengths(), config, cache.dataset_hash, cache.tokenizer_hash
        )
        plan = builder.build(num_epochs=2)
        plan.save(work / "plan")
        print(f"2. plan {plan.fingerprint[:12]}: {plan.num_batches} batches")

        # 3. The batches as files. One that was killed is gone on with by resume=True.
        samples = SampleStore(encode_texts(read_texts(TEXTS), tokenizer))
        write_batches(work / "batches", plan, samples, pad_id=tokenizer.pad_id)
        size = sum(file.stat().st_size for file in (work / "batches").rglob("*.npz"))
        print(f"3. {size / 1e6:.1f} MB of batches")

        # 4. What training reads; every file is checked against the manifest.
        reader = BatchReader(work / "batches", plan)
        for epoch in range(reader.num_epochs):
            tokens = loss_tokens = 0
            for batch in reader.iter_epoch(epoch):
                # A model takes input_ids, position_ids and a mask made from segment_ids; the loss
                # is the mean over the tokens where loss_mask is 1.
                tokens += batch.num_tokens
                loss_tokens += batch.num_loss_tokens
            print(f"4. epoch {epoch}: {tokens} tokens, {loss_tokens} of them in the loss")
        assert tokens == sum(cache.lengths().values())


if __name__ == "__main__":
    main()
