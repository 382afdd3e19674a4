"""Refusals: told from answers, by kind, with the words that decided."""

from query_mutator.objectives.refusal.detector import (
    Refusal,
    RefusalDetector,
    find_refusals,
    load_detector,
)
from query_mutator.objectives.refusal.rules import opens_as_refusal

__all__ = ["Refusal", "RefusalDetector", "find_refusals", "load_detector", "opens_as_refusal"]
