"""How near single words are in meaning, from the input vectors of the packaged MiniLM.

No text is embedded for it: a word's vector is looked up, and turned by a learned matrix to where
the model's own embedding of the word would lie.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.base.weights import packaged_model_path

Vectors = npt.NDArray[np.float32]

WIDTH = 384


class Meanings:
    """Cosines of words."""

    def __init__(self, mean: Vectors, turn: Vectors) -> None:
        self._mean, self._turn = mean, turn
        self.cosine = functools.lru_cache(maxsize=65536)(self._cosine)
        self._vector = functools.lru_cache(maxsize=16384)(self._turned)

    def _cosine(self, left: str, right: str) -> float:
        return float(self._vector(left) @ self._vector(right))

    def _turned(self, word: str) -> Vectors:
        vector = (mean_of_pieces(word) - self._mean) @ self._turn
        return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


def mean_of_pieces(word: str) -> Vectors:
    """The mean of the input vectors of a word's pieces."""
    pieces = _tokenizer().encode(word, add_special_tokens=False).ids
    rows = _table()[pieces] if pieces else np.zeros((1, WIDTH), np.float32)
    return np.asarray(rows.mean(axis=0), np.float32)


@functools.cache
def _table() -> Vectors:
    from safetensors import safe_open

    with safe_open(packaged_model_path() / "model.safetensors", "np") as file:
        return np.asarray(file.get_tensor("embeddings.word_embeddings.weight"), np.float32)


@functools.cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(packaged_model_path() / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found
