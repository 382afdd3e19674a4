"""Samples in planned batches, as the tensors that a training step takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from batching import (
    BatchingConfig,
    BatchPlanBuilder,
    BatchSpec,
    EpochPlan,
    OverflowPolicy,
    PackingConfig,
    Sample,
    collate,
)
from query_mutator.tuning.attention import SampleLayout
from query_mutator.tuning.prompts import WEIGHT
from query_mutator.tuning.settings import TuningSettings


@dataclass(frozen=True)
class Batch:
    """Rows of tokens, and which of them are to be predicted, with what weight."""

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    attention_mask: torch.Tensor | None
    """None where rows hold several samples: their positions and their layout tell them apart."""
    layout: SampleLayout | None
    predicting: torch.Tensor
    """The places, counted through all rows, of which the next token counts in the loss."""
    targets: torch.Tensor
    """Those next tokens."""
    weights: torch.Tensor
    """And how much each counts."""
    num_tokens: int
    """Tokens, padding apart."""

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        moved = {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in vars(self).items()
        }
        if self.layout is not None:
            moved["layout"] = self.layout.to(device)
        return Batch(**moved)


def batch_of(
    samples: Mapping[str, Sample], spec: BatchSpec, pad_id: int, *, by_sample: bool
) -> Batch:
    """The batch that a plan describes; `by_sample` says how its packed rows are told apart."""
    rows = collate(samples, spec, pad_id)
    flat_ids = rows.input_ids.reshape(-1)
    learned = rows.loss_mask.astype(bool)
    learned[:, 0] = False
    # The first token of a sample is not to be predicted from the sample before it.
    learned[:, 1:] &= rows.segment_ids[:, 1:] == rows.segment_ids[:, :-1]
    places = np.flatnonzero(learned.reshape(-1))
    weights = np.ones(rows.shape, np.float32)
    for number, names in enumerate(rows.sample_ids):
        for segment, name in enumerate(names):
            weight = float(samples[name].meta.get(WEIGHT, 1.0))
            if weight != 1.0:
                weights[number, rows.segment_ids[number] == segment] = weight
    is_packed = max(spec.rows) > 1
    positions = rows.position_ids.astype(np.int64)
    return Batch(
        torch.from_numpy(rows.input_ids.astype(np.int64)),
        torch.from_numpy(positions),
        None if is_packed or by_sample else torch.from_numpy(rows.attention_mask.astype(np.int64)),
        SampleLayout.of(rows.segment_ids) if by_sample else None,
        torch.from_numpy(places - 1),
        torch.from_numpy(flat_ids[places].astype(np.int64)),
        torch.from_numpy(weights.reshape(-1)[places]),
        rows.num_tokens,
    )


def planned(samples: Sequence[Sample], config: BatchingConfig, epoch: int) -> EpochPlan:
    """The batches of an epoch, in an order of its own."""
    lengths = {sample.sample_id: len(sample) for sample in samples}
    return BatchPlanBuilder(lengths, config).build(num_epochs=epoch + 1).epoch(epoch)


def packed_config(settings: TuningSettings, **others: Any) -> BatchingConfig:
    """Packed rows within the budget."""
    longest = min(settings.pack_max_len, settings.token_budget)
    return BatchingConfig(
        token_budget=settings.token_budget,
        bucket_edges=(max(1, longest - 1),),
        overflow_max=longest,
        seed=settings.seed,
        on_overflow=OverflowPolicy.TRUNCATE,
        packing=PackingConfig(max_length=longest),
        **others,
    )
