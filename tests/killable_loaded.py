"""Imported by the process that the others are forked from: what they need is loaded there."""

from __future__ import annotations

import matplotlib.pyplot  # noqa: F401

from query_mutator.english.spelling import correct_spelling
from tests.killable import embedder

embedder()
correct_spelling("a wrod")
