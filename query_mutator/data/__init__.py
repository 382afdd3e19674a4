"""Harmless questions with reference answers, and how files of them are read."""

from query_mutator.data.loading import (
    DEFAULT_FILE,
    Question,
    load_questions,
    sample_questions,
    split_questions,
)

__all__ = ["DEFAULT_FILE", "Question", "load_questions", "sample_questions", "split_questions"]
