"""Samples in planned batches, as the tensors that a training step takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import torch

from batching import BatchSpec, Sample, collate
from batching.generation.batches import planned_piece
from query_mutator.tuning.attention import SampleLayout
from query_mutator.tuning.prompts import WEIGHT


class Packing(StrEnum):
    """How a model keeps the samples of a packed row apart."""

    BY_SAMPLE = "by sample"
    """Each is attended to by itself: the quickest."""
    BY_POSITION = "by position"
    """Their positions begin anew, and transformers makes a mask of that."""
    NONE = "none"
    """It does not: something in it goes on from one sample to the next."""


@dataclass(frozen=True)
class Batch:
    """Rows of tokens, and which of them are to be predicted, with what weight."""

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    predicting: torch.Tensor
    """The places, counted through all rows, of which the next token counts in the loss."""
    targets: torch.Tensor
    """Those next tokens."""
    weights: torch.Tensor
    """And how much each counts."""
    num_tokens: int
    """Tokens of the samples, padding apart."""
    attention_mask: torch.Tensor | None = None
    """None where rows hold several samples: their positions or their layout tell them apart."""
    layout: SampleLayout | None = None

    @property
    def counted(self) -> float:
        """How much all its tokens count together."""
        return float(self.weights.sum())

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        moved: dict[str, Any] = {
            name: value.to(device) if isinstance(value, torch.Tensor | SampleLayout) else value
            for name, value in vars(self).items()
        }
        return Batch(**moved)


def shared_beginning(samples: Iterable[Sample]) -> int:
    """How many tokens all samples begin with alike, none of which is learned."""
    common: tuple[int, ...] | None = None
    for sample in samples:
        unlearned = sample.loss_mask.index(1) if 1 in sample.loss_mask else len(sample)
        # A sample keeps a token of its own, from which the first learned one is predicted.
        own = sample.input_ids[: max(0, min(unlearned, len(sample)) - 1)]
        if common is None:
            common = own
            continue
        same = 0
        for one, other in zip(common, own, strict=False):
            if one != other:
                break
            same += 1
        common = common[:same]
        if not common:
            break
    return len(common or ())


def batch_of(
    samples: Mapping[str, Sample], spec: BatchSpec, pad_id: int, packing: Packing, shared: int = 0
) -> Batch:
    """The batch that a plan describes.

    `shared` is the number of tokens that all samples begin with alike.
    """
    if packing is Packing.BY_SAMPLE and max(spec.rows, default=1) > 1:
        return _flat(samples, spec, shared)
    return _padded(samples, spec, pad_id)


def _flat(samples: Mapping[str, Sample], spec: BatchSpec, shared: int) -> Batch:
    """All samples in one long row, without padding, behind the beginning that they share."""
    pieces = [
        (sample, start, start + length)
        for row in spec.row_entries()
        for sample, start, length in (planned_piece(samples, *entry) for entry in row)
    ]
    if any(start or stop <= shared for _, start, stop in pieces):
        shared = 0  # a part of a sample that was cut has another beginning
    first = pieces[0][0]
    input_ids = list(first.input_ids[:shared])
    positions = list(range(shared))
    learned = [0] * shared
    weights = [0.0] * shared
    for sample, start, stop in pieces:
        own = slice(start + shared, stop)
        input_ids += sample.input_ids[own]
        positions += range(shared, stop - start)
        # The first token of a sample is not to be predicted from the sample before it.
        mask = list(sample.loss_mask[own])
        mask[0] = 0
        learned += mask
        weights += [float(sample.meta.get(WEIGHT, 1.0))] * len(mask)
    places = np.flatnonzero(learned)
    ids = np.asarray(input_ids, np.int64)
    return Batch(
        torch.from_numpy(ids)[None],
        torch.tensor([positions]),
        torch.from_numpy(places - 1),
        torch.from_numpy(ids[places]),
        torch.from_numpy(np.asarray(weights, np.float32)[places]),
        sum(stop - start for _, start, stop in pieces),
        layout=SampleLayout.of([stop - start - shared for _, start, stop in pieces], shared),
    )


def _padded(samples: Mapping[str, Sample], spec: BatchSpec, pad_id: int) -> Batch:
    """The rows of the plan, padded to its width."""
    rows = collate(samples, spec, pad_id)
    flat_ids = rows.input_ids.reshape(-1).astype(np.int64)
    learned = rows.loss_mask.astype(bool)
    learned[:, 0] = False
    learned[:, 1:] &= rows.segment_ids[:, 1:] == rows.segment_ids[:, :-1]
    places = np.flatnonzero(learned.reshape(-1))
    weights = np.ones(rows.shape, np.float32)
    for number, names in enumerate(rows.sample_ids):
        for segment, name in enumerate(names):
            weight = float(samples[name].meta.get(WEIGHT, 1.0))
            weights[number, rows.segment_ids[number] == segment] = weight
    mask: Any = None
    if max(spec.rows, default=1) == 1:
        mask = torch.from_numpy(rows.attention_mask.astype(np.int64))
    return Batch(
        torch.from_numpy(rows.input_ids.astype(np.int64)),
        torch.from_numpy(rows.position_ids.astype(np.int64)),
        torch.from_numpy(places - 1),
        torch.from_numpy(flat_ids[places]),
        torch.from_numpy(weights.reshape(-1)[places]),
        rows.num_tokens,
        attention_mask=mask,
    )
