"""How well batches use their tokens, and which shapes they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from batching.core.overflow import OverflowCounts
from batching.core.table import UNKNOWN, BatchSpec, BatchTable, table_of


@dataclass(frozen=True)
class BatchMetrics:
    """Sums over batches, and the shares that follow; add two for the metrics of both."""

    num_batches: int = 0
    num_rows: int = 0
    num_samples: int = 0
    """Samples and parts of samples in the batches."""
    real_tokens: int = 0
    total_tokens: int = 0
    """Padding included."""
    loss_tokens: int | None = 0
    """None where it is not known, as in a plan, which has no loss masks."""
    skipped_samples: int | None = 0
    """Samples that are in no batch; None where it is not known, as in the part of one rank."""

    @classmethod
    def of(
        cls,
        table: BatchTable,
        counts: OverflowCounts | None = None,
        *,
        loss_tokens: int | None = None,
    ) -> BatchMetrics:
        """The metrics of a table; `counts` tell of samples that are not in it."""
        return cls(
            num_batches=table.num_batches,
            num_rows=table.num_rows,
            num_samples=table.num_entries,
            real_tokens=table.real_tokens,
            total_tokens=int(table.token_counts.sum()),
            loss_tokens=loss_tokens,
            skipped_samples=counts.skipped + counts.too_short + counts.dropped if counts else None,
        )

    @classmethod
    def of_batches(
        cls, batches: Iterable[BatchSpec], *, loss_tokens: int | None = None
    ) -> BatchMetrics:
        """The metrics of batches; `ValueError` for one without spans: its lengths are not known."""
        table, _ = table_of(batches)
        if (table.length == UNKNOWN).any():
            raise ValueError("a batch without spans does not tell how many tokens it holds")
        return cls.of(table, loss_tokens=loss_tokens)

    def __add__(self, other: BatchMetrics) -> BatchMetrics:
        sums: dict[str, Any] = {}
        for name in self.__match_args__:
            pair = (getattr(self, name), getattr(other, name))
            sums[name] = None if None in pair else sum(pair)
        return BatchMetrics(**sums)

    @property
    def padding_tokens(self) -> int:
        """Places that hold no token."""
        return self.total_tokens - self.real_tokens

    @property
    def efficiency(self) -> float:
        """The share of all places that hold a token."""
        return self.real_tokens / self.total_tokens if self.total_tokens else 0.0

    @property
    def padding_waste(self) -> float:
        """The share of all places that hold padding."""
        return self.padding_tokens / self.total_tokens if self.total_tokens else 0.0

    @property
    def loss_efficiency(self) -> float | None:
        """The share of all places that count in the loss; None where it is not known."""
        if self.loss_tokens is None:
            return None
        return self.loss_tokens / self.total_tokens if self.total_tokens else 0.0

    @property
    def avg_batch_size(self) -> float:
        """Rows per batch."""
        return self.num_rows / self.num_batches if self.num_batches else 0.0

    @property
    def skip_rate(self) -> float | None:
        """The share of samples that are in no batch; None where it is not known."""
        if self.skipped_samples is None:
            return None
        seen = self.num_samples + self.skipped_samples
        return self.skipped_samples / seen if seen else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The sums and the shares, for JSON."""
        shares = ("efficiency", "padding_waste", "loss_efficiency", "avg_batch_size", "skip_rate")
        return {name: getattr(self, name) for name in (*self.__match_args__, *shares)}


@dataclass
class BatchShapeHistogram:
    """How often each shape (rows, width) occurs: every shape may mean a compilation.

    >>> shapes = BatchShapeHistogram()
    >>> shapes.add(BatchSpec(("a", "b"), bucket_id=0, max_length=128, token_count=256))
    >>> shapes.counts
    Counter({(2, 128): 1})
    """

    counts: Counter[tuple[int, int]] = field(default_factory=Counter)

    @classmethod
    def of(cls, table: BatchTable) -> BatchShapeHistogram:
        """The shapes in a table."""
        shapes = np.stack((table.rows_per_batch, table.width), axis=1)
        distinct, counts = np.unique(shapes, axis=0, return_counts=True)
        pairs = [(rows, width) for rows, width in distinct.tolist()]
        return cls(Counter(dict(zip(pairs, counts.tolist(), strict=True))))

    def add(self, batch: BatchSpec) -> None:
        """Counts one more batch."""
        self.counts[batch.batch_size, batch.max_length] += 1

    @property
    def num_shapes(self) -> int:
        """The number of distinct shapes."""
        return len(self.counts)

    @property
    def num_batches(self) -> int:
        """The number of batches counted."""
        return self.counts.total()

    def most_common(self, count: int | None = None) -> list[tuple[tuple[int, int], int]]:
        """The shapes by how often they occur, smaller shapes first among equals."""
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return ranked[:count]
