"""Imported by the process that the others are forked from: what they need is loaded there."""

from __future__ import annotations

import matplotlib.pyplot  # noqa: F401

import query_mutator.commands.train
import query_mutator.evaluation.command
import query_mutator.reports.show  # noqa: F401
import tests.killable  # noqa: F401
from query_mutator.english.spelling import correct_spelling
from query_mutator.models.encoders import load_encoder

load_encoder()
correct_spelling("a wrod")
