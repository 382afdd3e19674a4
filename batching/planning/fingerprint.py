"""Digests of batches, lengths and settings: different ones never share one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from batching.core import BatchSpec, BatchTable, IntArray
from batching.core.table import table_of


def digest_of(
    arrays: Mapping[str, IntArray], texts: Sequence[str], order: IntArray | None = None
) -> str:
    """A SHA-256 over named arrays and texts, each with its length; `order` says which texts.

    Without the lengths ["a", "b"] and ["ab"] would look the same, whatever stands between them.
    """
    texts = list(texts)
    text_lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if order is not None:
        text_lengths = text_lengths[order]
        texts = list(map(texts.__getitem__, order.tolist()))
    digest = hashlib.sha256()
    for name, array in {**arrays, "text_lengths": text_lengths}.items():
        digest.update(f"{name}:{len(array)}:".encode())
        digest.update(np.ascontiguousarray(array, "<i8").data)
    digest.update("".join(texts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def table_digest(table: BatchTable, ids: Sequence[str]) -> str:
    """The digest of the batches in a table: their ids, parts, rows, shapes, and their order."""
    arrays = {
        "start": table.start,
        "length": table.length,
        "row_offsets": table.row_offsets,
        "batch_offsets": table.batch_offsets,
        "width": table.width,
        "bucket": table.bucket,
    }
    return digest_of(arrays, ids, table.sample)


def compute_batch_fingerprint(batches: Iterable[BatchSpec]) -> str:
    """The digest of batches in their order; that of an epoch's plan is the same."""
    table, ids = table_of(batches)
    return table_digest(table, ids)


def lengths_digest(ids: Sequence[str], lengths: IntArray) -> str:
    """The digest of samples: their ids, their lengths, and their order."""
    return digest_of({"lengths": lengths}, ids)


def settings_digest(settings: Mapping[str, Any]) -> str:
    """The digest of whatever JSON can hold."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
