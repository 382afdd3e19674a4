"""A plan: all batches of all epochs, fixed in advance, that anyone can build again.

Run it from the repository: python examples/batching/03_batch_plan.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import BatchingConfig, BatchPlan, BatchPlanBuilder, verify
from batching.generation import ByteTokenizer, dataset_hash, measure_texts, read_texts

TEXTS = Path(__file__).with_name("texts.jsonl")


def main() -> None:
    tokenizer = ByteTokenizer()
    lengths = dict(measure_texts(read_texts(TEXTS), tokenizer))
    configs = {
        "predictable": BatchingConfig.predictable(token_budget=4096),
        "throughput": BatchingConfig.throughput(token_budget=4096),
    }
    for name, config in configs.items():
        plan = BatchPlanBuilder(lengths, config).build(num_epochs=2)
        print(
            f"{name:11}  {plan.num_batches} batches in {plan.num_epochs} epochs, "
            f"{plan.metrics.efficiency:.2%} of their places hold a token"
        )

    config = configs["throughput"]
    builder = BatchPlanBuilder(lengths, config, dataset_hash(TEXTS), tokenizer.tokenizer_hash)
    plan = builder.build(num_epochs=2)
    with tempfile.TemporaryDirectory() as folder:
        plan.save(Path(folder) / "plan")
        loaded = BatchPlan.load(Path(folder) / "plan")
    print("loaded, with the same fingerprint:", loaded.fingerprint == plan.fingerprint)

    # A plan holds every setting it was made with: with the lengths, it can be built again.
    rebuilt = BatchPlanBuilder.from_plan(loaded, lengths).build()
    print("built again, with the same fingerprint:", rebuilt.fingerprint == plan.fingerprint)
    print("differences:", verify(loaded, lengths))

    changed = {**lengths, next(iter(lengths)): 7}
    print("with one other length:", verify(loaded, changed)[0])

    # After a stop, go on at the batch that was next.
    whole = [batch.sample_ids for batch in plan.iter_epoch(1)]
    rest = [batch.sample_ids for batch in plan.iter_from(epoch=1, index=10)]
    print(f"from batch 10 on: {len(rest)} of {len(whole)}, the same:", rest == whole[10:])


if __name__ == "__main__":
    main()
