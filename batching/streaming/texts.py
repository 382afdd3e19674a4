"""A prompt and its completion as a sample to train on."""

from __future__ import annotations

from typing import Any

from batching.streaming.protocols import TextTokenizer
from batching.streaming.samples import StreamSample


def text_sample(
    tokenizer: TextTokenizer,
    *,
    prompt: str,
    completion: str,
    sample_id: str,
    meta: dict[str, Any] | None = None,
    **outcome: Any,
) -> StreamSample:
    """The tokens of both, of which those of the completion count in the loss.

    A tokenizer with an `eos_id` ends the completion with it: a model has to learn to stop.
    `outcome` is the rest of a `StreamSample`. The texts are in its `meta`.
    """
    asked, said = tokenizer.encode(prompt), tokenizer.encode(completion)
    end = getattr(tokenizer, "eos_id", None)
    if end is not None:
        said = [*said, end]
    return StreamSample(
        input_ids=(*asked, *said),
        loss_mask=(0,) * len(asked) + (1,) * len(said),
        meta={"sample_id": sample_id, "prompt": prompt, "completion": completion, **(meta or {})},
        **outcome,
    )
