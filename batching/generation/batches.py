"""Batches as arrays: what a training step takes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from batching.core import BatchSpec, Sample
from batching.planning import PADDING_SEGMENT, pack_row
from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import parse_json

ARRAYS = {
    "input_ids": np.int32,
    "loss_mask": np.uint8,
    "segment_ids": np.int32,
    "position_ids": np.int32,
}
"""What has a place for every token, and how it is stored."""


@dataclass(frozen=True, eq=False)
class CollatedBatch:
    """Rows of one width; what is beyond a row's length is padding."""

    input_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.uint8]
    """1 where a token counts in the loss; padding never does."""
    segment_ids: npt.NDArray[np.int32]
    """Which of a row's samples a token belongs to, from 0 on; -1 in padding."""
    position_ids: npt.NDArray[np.int32]
    """From 0 on in every segment."""
    lengths: npt.NDArray[np.int32]
    """Of each row: its tokens, without padding."""
    sample_ids: tuple[tuple[str, ...], ...]
    """Of each row: the samples in it, in order."""

    def __post_init__(self) -> None:
        rows, width = self.input_ids.shape
        for name, kind in ARRAYS.items():
            array = getattr(self, name)
            if array.shape != (rows, width) or array.dtype != kind:
                raise ValueError(f"{name} is not of the shape {(rows, width)} and type {kind}")
        if self.lengths.shape != (rows,) or len(self.sample_ids) != rows:
            raise ValueError(f"lengths and sample_ids are not those of {rows} rows")
        if ((self.segment_ids != PADDING_SEGMENT).sum(axis=1) != self.lengths).any():
            raise ValueError("lengths do not tell where padding begins")

    @property
    def attention_mask(self) -> npt.NDArray[np.uint8]:
        """1 for a token, 0 for padding; `segment_ids` tell which tokens may see each other."""
        return (self.segment_ids != PADDING_SEGMENT).astype(np.uint8)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and width."""
        rows, width = self.input_ids.shape
        return rows, width

    @property
    def num_tokens(self) -> int:
        """Tokens, padding apart."""
        return int(self.lengths.sum())

    @property
    def num_loss_tokens(self) -> int:
        """Tokens that count in the loss."""
        return int(self.loss_mask.sum())

    @property
    def num_rows_without_loss(self) -> int:
        """Rows from which nothing is learned."""
        return int((~self.loss_mask.any(axis=1)).sum())

    def same(self, other: CollatedBatch) -> bool:
        """Whether it holds the same tokens of the same samples."""
        return self.sample_ids == other.sample_ids and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in (*ARRAYS, "lengths")
        )

    def to_bytes(self) -> bytes:
        """The batch as an NPZ, the same bytes for the same batch."""
        names = json.dumps(self.sample_ids).encode()
        file = io.BytesIO()
        np.savez(
            file,
            **{name: getattr(self, name) for name in (*ARRAYS, "lengths")},
            # Texts in an array of their own kind would lose zeros at their ends.
            sample_ids=np.frombuffer(names, np.uint8),
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> CollatedBatch:
        """What `to_bytes` gave; `ValueError` for anything else."""
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                # Nothing in it is compressed, so nothing can be larger than it.
                if sum(member.file_size for member in archive.infolist()) > len(content):
                    raise ValueError("it holds more than was written")
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                found: dict[str, Any] = {name: arrays[name] for name in (*ARRAYS, "lengths")}
                stored = arrays["sample_ids"].tobytes()
                # A batch may have very many samples; the size of its file is what bounds them.
                names = parse_json(stored, deepest=2, most_values=len(stored))
            rows = tuple(tuple(map(str, row)) for row in names)
            return cls(**found, sample_ids=rows)
        except Exception as error:  # zipfile and numpy raise errors of any kind
            raise ValueError(f"it is no batch: {error}") from error


def collate(samples: Mapping[str, Sample], batch: BatchSpec, pad_id: int = 0) -> CollatedBatch:
    """The rows of a planned batch, padded to the width that the plan gave it.

    `UserError` where the samples are not those that the plan was made for.

    >>> samples = {"a": Sample((5, 6, 7), (0, 1, 1)), "b": Sample((8,), (1,))}
    >>> collate(samples, BatchSpec(("a", "b"), 0, max_length=4, token_count=8)).input_ids.tolist()
    [[5, 6, 7, 0], [8, 0, 0, 0]]
    """
    shape = (batch.batch_size, batch.max_length)
    fill = {"input_ids": pad_id, "segment_ids": PADDING_SEGMENT}
    arrays: dict[str, Any] = {
        name: np.full(shape, fill.get(name, 0), kind) for name, kind in ARRAYS.items()
    }
    lengths, names = np.zeros(batch.batch_size, np.int32), []
    for number, entries in enumerate(batch.row_entries()):
        row = pack_row([planned_piece(samples, *entry) for entry in entries])
        if len(row) > batch.max_length:
            raise UserError(f"a row of {len(row)} tokens is planned as {batch.max_length} wide")
        for name, array in arrays.items():
            array[number, : len(row)] = getattr(row, name)
        lengths[number] = len(row)
        names.append(tuple(name for name, _, _ in entries))
    return CollatedBatch(**arrays, lengths=lengths, sample_ids=tuple(names))


def planned_piece(
    samples: Mapping[str, Sample], name: str, start: int, length: int
) -> tuple[Sample, int, int]:
    """The sample that a plan names, and which of its tokens; `UserError` where it has others."""
    sample = samples.get(name)
    if sample is None:
        raise UserError(
            f"the plan has a sample {name!r} that the data has not; build the plan again"
        )
    if length < 0:
        length = len(sample) - start
    if not 0 <= start <= start + length <= len(sample):
        raise UserError(
            f"sample {name!r} has {len(sample)} tokens where the plan has {start + length}: "
            "the data or the tokenizer is another; build the plan again"
        )
    return sample, start, length
