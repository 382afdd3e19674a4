"""The packaged embedding model for tests: what it has computed once serves all that follow."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from query_mutator.models import encoders
from query_mutator.models.encoders import SentenceTransformerEmbedder, Vectors

packaged = encoders._packaged_embedder
"""The model as the program loads it, without a memory."""


class Remembering:
    """An embedder whose rows depend on their texts alone, with all that it has given."""

    exact_in_batches = True

    def __init__(self, embedder: SentenceTransformerEmbedder) -> None:
        assert embedder.exact_in_batches
        self.dimension = embedder.dimension
        self._embedder = embedder
        self._rows: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        unknown = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if unknown:
            self._rows.update(zip(unknown, self._embedder.embed(unknown), strict=True))
        rows = [self._rows[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)


@functools.cache
def remembering(torch_threads: int) -> Remembering | SentenceTransformerEmbedder:
    """The model with a memory; without one where the bits of a row depend on its company."""
    embedder = packaged(torch_threads)
    return Remembering(embedder) if embedder.exact_in_batches else embedder
