"""Several samples in one row, without one of them seeing another.

Run it from the repository: python examples/batching/02_packing.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import PackingConfig, PackingMode, create_segment_attention_mask, pack_sequences
from batching.generation import ByteTokenizer, encode_texts, read_texts

MAX_LENGTH = 2048

TEXTS = Path(__file__).with_name("texts.jsonl")


def main() -> None:
    tokenizer = ByteTokenizer()
    samples = list(encode_texts(read_texts(TEXTS), tokenizer))

    for mode in PackingMode:
        rows, metrics = pack_sequences(samples, PackingConfig(mode, MAX_LENGTH))
        print(
            f"{mode:9}  {metrics.num_samples} samples in {metrics.num_rows} rows of {MAX_LENGTH}, "
            f"{metrics.efficiency:.2%} full; no packing needs fewer than {metrics.lower_bound} rows"
        )

    # Padding has a segment of its own, -1; positions begin at 0 in every segment.
    rows, _ = pack_sequences(samples, PackingConfig(max_length=512), on_overflow="skip")
    row = max(rows, key=lambda row: row.num_segments).padded(512, tokenizer.pad_id)
    print(f"a row of 512 holds {row.num_segments} samples: {', '.join(row.sample_ids)}")
    second = row.segment_ids.index(1)
    print(f"segments {row.segment_ids[second - 2 : second + 2]} at the first border")
    print(f"positions {row.position_ids[second - 2 : second + 2]}")

    mask = create_segment_attention_mask(row.segment_ids)
    print(f"token {second} sees {mask[second].sum()} token of its segment")
    print("and the one before it, of another segment:", bool(mask[second, second - 1]))
    lost = sum(map(len, samples)) - sum(row.num_tokens for row in rows)
    skipped = sum(len(sample) for sample in samples if len(sample) > 512)
    print(f"{lost} tokens are in no row, all of them in samples over 512 tokens: {lost == skipped}")


if __name__ == "__main__":
    main()
