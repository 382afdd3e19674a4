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

from batching.core.arrays import offsets_of

BY_SAMPLE = "by_sample"
"""The name of this attention among those of transformers."""
SHORT = 256
"""Up to this width plain matrix products are faster than the fused kernel of a CPU, and what they
keep for the gradients is small."""
SHORTEST_GROUP = 16
NOT_HERE = ("softcap", "s_aux", "position_bias")
"""What some models add to their attention, and this one does not know."""


@dataclass(frozen=True)
class Group:
    """Samples of like lengths, each in a row of its own."""

    num_samples: int
    width: int
    """Tokens of the longest; the places of the others beyond their end are seen by nobody."""
    shared: int
    """Tokens of the beginning, which stand in front of the keys of each."""

    @property
    def reach(self) -> int:
        """Keys for each query."""
        return self.shared + self.width

    def mask(self, window: int | None, device: torch.device) -> torch.Tensor:
        """Whether a query, by row, may look at a key: neither later nor before its window."""
        query = torch.arange(self.width, device=device)[:, None] + self.shared
        key = torch.arange(self.reach, device=device)[None]
        allowed = key <= query
        return allowed if window is None else allowed & (key > query - window)


@dataclass(frozen=True)
class SampleLayout:
    """Where the samples of one long row stand, and where when they are spread out in groups."""

    groups: tuple[Group, ...]
    queries: torch.Tensor
    """Of each place of the groups, one after the other: the token that stands there."""
    keys: torch.Tensor
    """The same with the shared beginning in front of every sample."""
    query_places: torch.Tensor
    """Of each token: its place among the queries."""
    key_places: torch.Tensor
    """Of each token: its own place among the keys."""

    @classmethod
    def of(cls, lengths: Sequence[int], shared: int = 0) -> SampleLayout:
        """Of samples of these lengths, after a beginning of `shared` tokens that is theirs all."""
        sizes = np.asarray([shared, *lengths] if shared else lengths, np.int64)
        starts = offsets_of(sizes)[:-1]
        # Nobody's group is wider than twice its own length: little is spent on padding.
        kinds = np.ceil(np.log2(np.maximum(sizes, SHORTEST_GROUP))).astype(np.int64)
        if shared:
            kinds[0] = 0  # the beginning itself has nothing in front
        groups, queries, keys = [], [], []
        query_places, key_places = np.empty((2, int(sizes.sum())), np.int64)
        query_count = key_count = 0
        for kind in np.unique(kinds).tolist():
            members = np.flatnonzero(kinds == kind)
            group = Group(len(members), int(sizes[members].max()), shared if kind else 0)
            inside = np.minimum(np.arange(group.width), sizes[members][:, None] - 1)
            tokens = starts[members][:, None] + inside
            beginning = np.broadcast_to(np.arange(group.shared), (len(members), group.shared))
            queries.append(tokens.reshape(-1))
            keys.append(np.concatenate([beginning, tokens], axis=1).reshape(-1))
            for number, member in enumerate(members.tolist()):
                own = slice(starts[member], starts[member] + sizes[member])
                first = np.arange(sizes[member])
                query_places[own] = query_count + number * group.width + first
                key_places[own] = key_count + number * group.reach + group.shared + first
            query_count += len(members) * group.width
            key_count += len(members) * group.reach
            groups.append(group)
        arrays = (np.concatenate(queries), np.concatenate(keys), query_places, key_places)
        return cls(tuple(groups), *map(torch.from_numpy, arrays))

    def to(self, device: torch.device) -> SampleLayout:
        """The same on a device."""
        tensors = (self.queries, self.keys, self.query_places, self.key_places)
        return SampleLayout(self.groups, *(tensor.to(device) for tensor in tensors))


class _Spread(torch.autograd.Function):
    """Tokens to places. Its gradient gathers too: fast, and the same to the bit in every run."""

    @staticmethod
    def forward(
        ctx: Any, states: torch.Tensor, index: torch.Tensor, layout: SampleLayout, is_keys: bool
    ) -> torch.Tensor:
        ctx.layout, ctx.is_keys = layout, is_keys
        return states.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        (spread,), layout = gradients, ctx.layout
        if not ctx.is_keys:
            return spread.index_select(0, layout.query_places), None, None, None
        # Nobody looks at places beyond a sample's end: their gradients are 0.
        found = spread.index_select(0, layout.key_places)
        first = 0
        for group in layout.groups:
            count = group.num_samples * group.reach
            if group.shared:
                own = spread[first : first + count].view(group.num_samples, group.reach, -1)
                total = own[:, : group.shared].sum(0, dtype=torch.float32).to(spread.dtype)
                found[: group.shared] += total.view_as(found[: group.shared])
            first += count
        return found, None, None, None


class _Gathered(torch.autograd.Function):
    """Places back to tokens."""

    @staticmethod
    def forward(ctx: Any, spread: torch.Tensor, layout: SampleLayout) -> torch.Tensor:
        ctx.places, ctx.shape = layout.query_places, spread.shape
        return spread.index_select(0, layout.query_places)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (found,) = gradients
        return found.new_zeros(ctx.shape).index_copy_(0, ctx.places, found), None


def attention_by_sample(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    *,
    layout: SampleLayout,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers asks of an attention: rows × tokens × heads × size, and no weights."""
    if any(others.get(name) is not None for name in NOT_HERE):
        raise NotImplementedError("this attention has a part that is not known here")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    # One row: heads × tokens × size becomes tokens × heads × size.
    queries, keys, values = (states[0].transpose(0, 1) for states in (query, key, value))
    spread_queries = _Spread.apply(queries, layout.queries, layout, False)
    spread_keys = _Spread.apply(keys, layout.keys, layout, True)
    spread_values = _Spread.apply(values, layout.keys, layout, True)
    key_sizes = [group.num_samples * group.reach for group in layout.groups]
    attended = [
        _attend(asked, seen, told, group, scale, dropout, sliding_window)
        for group, asked, seen, told in zip(
            layout.groups,
            spread_queries.split([group.num_samples * group.width for group in layout.groups]),
            spread_keys.split(key_sizes),
            spread_values.split(key_sizes),
            strict=True,
        )
    ]
    return _Gathered.apply(torch.cat(attended), layout)[None], None


def _attend(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    group: Group,
    scale: float,
    dropout: float,
    window: int | None,
) -> torch.Tensor:
    """What each place of a group sees: places × heads × size."""
    samples, width, heads, kv_heads = (
        group.num_samples,
        group.width,
        queries.shape[1],
        keys.shape[1],
    )
    together = heads // kv_heads  # heads that share keys are rows of one product
    asked = queries.view(samples, width, kv_heads, together, -1)
    asked = asked.permute(0, 2, 3, 1, 4).reshape(samples * kv_heads, together * width, -1)
    keys, values = (
        states.view(samples, group.reach, kv_heads, -1)
        .transpose(1, 2)
        .reshape(samples * kv_heads, group.reach, -1)
        for states in (keys, values)
    )
    mask = group.mask(window, queries.device).repeat(together, 1)
    if width <= SHORT and not dropout:
        bias = torch.zeros_like(mask, dtype=queries.dtype).masked_fill_(~mask, float("-inf"))
        bias = bias.expand(samples * kv_heads, *mask.shape)
        scores = torch.baddbmm(bias, asked, keys.transpose(1, 2), alpha=scale)
        seen = torch.bmm(scores.softmax(-1), values)
    else:
        seen = scaled_dot_product_attention(asked, keys, values, mask, dropout, scale=scale)
    seen = seen.view(samples, kv_heads, together, width, -1).permute(0, 3, 1, 2, 4)
    return seen.reshape(samples * width, heads, -1)


@contextlib.contextmanager
def sample_by_sample(model: Any) -> Iterator[None]:
    """While it lasts, the model's forward pass takes a `layout`, one row, and no mask."""
    from transformers import AttentionInterface

    AttentionInterface.register(BY_SAMPLE, attention_by_sample)
    before = model.config._attn_implementation
    model.set_attn_implementation(BY_SAMPLE)
    try:
        yield
    finally:
        model.set_attn_implementation(before)
