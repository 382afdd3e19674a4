"""Harmless questions with reference answers, and how files of them are read."""

from query_mutator.data.loading import (
    DEFAULT_FILE,
    Question,
    load_questions,
    sample_questions,
    split_questions,
)
from query_mutator.data.twins import Twin, load_twins, twins_of

__all__ = [
    "DEFAULT_FILE",
    "Question",
    "Twin",
    "load_questions",
    "load_twins",
    "sample_questions",
    "split_questions",
    "twins_of",
]
