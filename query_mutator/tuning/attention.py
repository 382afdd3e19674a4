"""Attention over packed rows, sample by sample: none sees another, and none pays for another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import scaled_dot_product_attention

BY_SAMPLE = "by_sample"
"""The name of this attention among those of transformers."""
ORDINARY = "sdpa"


@dataclass(frozen=True)
class SampleLayout:
    """Where the samples of a batch stand, and where they stand when each has a row of its own."""

    spread: torch.Tensor
    """Of each place in the spread batch, sample by width: the token that stands there. Places
    beyond a sample's end hold any token: no token looks at what comes after it."""
    gathered: torch.Tensor
    """Of each token: its place in the spread batch."""
    shape: tuple[int, int]

    def to(self, device: torch.device) -> SampleLayout:
        """The same on a device."""
        return SampleLayout(self.spread.to(device), self.gathered.to(device), self.shape)

    @classmethod
    def of(cls, segment_ids: npt.NDArray[Any]) -> SampleLayout:
        """From which sample each token belongs to, row by row; padding is a sample too."""
        rows, width = segment_ids.shape
        border = np.ones((rows, width), bool)
        border[:, 1:] = segment_ids[:, 1:] != segment_ids[:, :-1]
        starts = np.flatnonzero(border)
        lengths = np.diff(np.append(starts, rows * width))
        longest = int(lengths.max())
        inside = np.minimum(np.arange(longest)[None], lengths[:, None] - 1)
        sample = np.repeat(np.arange(len(starts)), lengths)
        gathered = sample * longest + np.arange(rows * width) - starts[sample]
        return cls(
            torch.from_numpy((starts[:, None] + inside).reshape(-1)),
            torch.from_numpy(gathered),
            (len(starts), longest),
        )


def attention_by_sample(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    *,
    layout: SampleLayout,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers asks of an attention: rows × tokens × heads × size, and no weights."""
    rows, _, width, _ = query.shape
    samples, longest = layout.shape

    def spread(states: torch.Tensor) -> torch.Tensor:
        flat = states.transpose(1, 2).reshape(rows * width, *states.shape[1::2])
        return flat[layout.spread].view(samples, longest, *flat.shape[1:]).transpose(1, 2)

    attended = scaled_dot_product_attention(
        spread(query),
        spread(key),
        spread(value),
        dropout_p=dropout,
        scale=scaling,
        is_causal=True,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    flat = attended.transpose(1, 2).reshape(samples * longest, *attended.shape[1::2])
    return flat[layout.gathered].view(rows, width, *flat.shape[1:]), None


@contextlib.contextmanager
def sample_by_sample(model: Any) -> Iterator[None]:
    """While it lasts, the model's forward pass takes a `layout` and no mask."""
    from transformers import AttentionInterface

    AttentionInterface.register(BY_SAMPLE, attention_by_sample)
    model.set_attn_implementation(BY_SAMPLE)
    try:
        yield
    finally:
        model.set_attn_implementation(ORDINARY)
