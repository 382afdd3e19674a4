"""A tokenised text to train on."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass(frozen=True)
class Sample:
    """Tokens, which of them count in the loss, and optionally which segment each belongs to.

    >>> sample = Sample((5, 6, 7), (0, 1, 1), meta={"sample_id": "first"})
    >>> len(sample), sample.sample_id, sample.num_loss_tokens
    (3, 'first', 2)
    """

    input_ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    segment_ids: tuple[int, ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("input_ids", "loss_mask", "segment_ids"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, tuple(getattr(self, name)))
        try:
            tokens = array("i", self.input_ids)
        except (TypeError, OverflowError):
            raise ValueError(f"tokens must be whole numbers below {2**31}") from None
        if tokens and min(tokens) < 0:
            raise ValueError("a token cannot be negative")
        if len(self.loss_mask) != len(self.input_ids):
            raise ValueError(
                f"loss_mask has {len(self.loss_mask)} entries for {len(self.input_ids)} tokens"
            )
        if not set(self.loss_mask) <= {0, 1}:
            raise ValueError("loss_mask may hold only 0 and 1")
        if self.segment_ids is None:
            return
        if len(self.segment_ids) != len(self.input_ids):
            raise ValueError(
                f"segment_ids has {len(self.segment_ids)} entries for {len(self.input_ids)} tokens"
            )
        if any(after < before for before, after in pairwise(self.segment_ids)):
            raise ValueError("segment_ids may not fall")
        if self.segment_ids and self.segment_ids[0] < 0:
            raise ValueError("segment_ids may not be negative: -1 marks padding")

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def sample_id(self) -> str:
        """The name under which lengths and plans know this sample; "" without one."""
        return str(self.meta.get("sample_id", ""))

    @property
    def num_loss_tokens(self) -> int:
        """How many tokens count in the loss."""
        return sum(self.loss_mask)
