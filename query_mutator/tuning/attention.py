"""Attention over packed samples, sample by sample: none sees another, and none pays for another.

Samples of a data set often begin alike, with the same system prompt. In a packed row that beginning
stands once, and every sample looks back at it: that is as if each had it, and saves the work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from batching.core.arrays import IntArray, offsets_of

BY_SAMPLE = "by_sample"
"""The name of this attention among those of transformers."""
ORDINARY = "sdpa"
SHORT = 256
"""Up to this length plain matrix products are faster than the fused kernel of a CPU, and what they
keep for the gradients is small."""


@dataclass(frozen=True)
class Group:
    """Samples of like lengths, spread out: each has a row of its own."""

    queries: torch.Tensor
    """Of each place, sample by width: the token that stands there. Places beyond a sample's end
    hold its last token once more: nobody looks at them, and what they see is dropped."""
    keys: torch.Tensor
    """The same with the shared beginning in front."""
    num_samples: int
    mask: torch.Tensor
    """Width by width of the keys: whether a token may look at another."""

    def to(self, device: torch.device) -> Group:
        """The same on a device."""
        tensors = (tensor.to(device) for tensor in (self.queries, self.keys, self.mask))
        queries, keys, mask = tensors
        return Group(queries, keys, self.num_samples, mask)


@dataclass(frozen=True)
class SampleLayout:
    """Where the samples of a flat row stand."""

    groups: tuple[Group, ...]
    gathered: torch.Tensor
    """Of each token: its place among those of all groups, one after the other."""

    @classmethod
    def of(cls, lengths: Sequence[int], shared: int = 0) -> SampleLayout:
        """Of samples of these lengths, after a beginning of `shared` tokens that is theirs all."""
        sizes = np.asarray([shared, *lengths] if shared else lengths, np.int64)
        starts = offsets_of(sizes)[:-1]
        # A sample takes part in a group up to twice its length: little is spent on padding.
        classes = np.ceil(np.log2(np.maximum(sizes, 16))).astype(np.int64)
        if shared:
            classes[0] = -1  # looks back at nothing
        groups, gathered, place = [], np.zeros(int(sizes.sum()), np.int64), 0
        for kind in np.unique(classes).tolist():
            members = np.flatnonzero(classes == kind)
            own = starts[members], sizes[members]
            groups.append(_group(*own, shared if kind >= 0 else 0))
            width = int(own[1].max())
            for number, (start, size) in enumerate(zip(*own, strict=True)):
                gathered[start : start + size] = place + number * width + np.arange(size)
            place += len(members) * width
        return cls(tuple(groups), torch.from_numpy(gathered))

    def to(self, device: torch.device) -> SampleLayout:
        """The same on a device."""
        return SampleLayout(
            tuple(group.to(device) for group in self.groups), self.gathered.to(device)
        )


def _group(starts: IntArray, sizes: IntArray, shared: int) -> Group:
    width = int(sizes.max())
    places = starts[:, None] + np.minimum(np.arange(width)[None], sizes[:, None] - 1)
    beginning = np.broadcast_to(np.arange(shared), (len(starts), shared))
    return Group(
        torch.from_numpy(places.reshape(-1)),
        torch.from_numpy(np.concatenate([beginning, places], axis=1).reshape(-1)),
        len(starts),
        torch.from_numpy(np.tril(np.ones((width, shared + width), bool), shared)),
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
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    # One row: heads × tokens × size becomes tokens × heads × size.
    queries, keys, values = (states[0].transpose(0, 1) for states in (query, key, value))
    attended = [_attend(queries, keys, values, group, scale, dropout) for group in layout.groups]
    return torch.cat(attended)[layout.gathered][None], None


def _attend(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    group: Group,
    scale: float,
    dropout: float,
) -> torch.Tensor:
    """What each place of a group sees: places × heads × size."""
    samples, (width, reach) = group.num_samples, group.mask.shape
    heads, kv_heads, size = queries.shape[1], keys.shape[1], queries.shape[2]
    # Heads that share keys are rows of one product.
    together = heads // kv_heads
    spread = queries[group.queries].view(samples, width, kv_heads, together, size)
    spread = spread.permute(0, 2, 3, 1, 4).reshape(samples * kv_heads, together * width, size)

    def spread_keys(states: torch.Tensor) -> torch.Tensor:
        found = states[group.keys].view(samples, reach, kv_heads, size)
        return found.transpose(1, 2).reshape(samples * kv_heads, reach, size)

    mask = group.mask.repeat(together, 1)
    if width <= SHORT and not dropout:
        bias = torch.zeros_like(mask, dtype=queries.dtype).masked_fill_(~mask, float("-inf"))
        bias = bias.expand(samples * kv_heads, *mask.shape)
        scores = torch.baddbmm(bias, spread, spread_keys(keys).transpose(1, 2), alpha=scale)
        seen = torch.bmm(scores.softmax(-1), spread_keys(values))
    else:
        seen = scaled_dot_product_attention(
            spread, spread_keys(keys), spread_keys(values), mask, dropout, scale=scale
        )
    seen = seen.view(samples, kv_heads, together, width, size).permute(0, 3, 1, 2, 4)
    return seen.reshape(samples * width, heads, size)


@contextlib.contextmanager
def sample_by_sample(model: Any) -> Iterator[None]:
    """While it lasts, the model's forward pass takes a `layout`, one row, and no mask."""
    from transformers import AttentionInterface

    AttentionInterface.register(BY_SAMPLE, attention_by_sample)
    model.set_attn_implementation(BY_SAMPLE)
    try:
        yield
    finally:
        model.set_attn_implementation(ORDINARY)
