"""Words to look for."""

from __future__ import annotations

import functools

from model_client.encoders import packaged_model_path

WH_WORDS = frozenset("what who whom whose which when where why how".split())


@functools.cache
def common_words() -> frozenset[str]:
    """Common English words and names: the whole words in the vocabulary of the packaged MiniLM."""
    vocabulary = (packaged_model_path() / "vocab.txt").read_text(encoding="utf-8").split("\n")
    return frozenset(word for word in vocabulary if word.isalpha())
