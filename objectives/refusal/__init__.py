"""Refusals: told from answers, by kind, with the words that decided."""

from objectives.refusal.detector import Refusal, find_refusal, is_refusal, refusal_kind

__all__ = ["Refusal", "find_refusal", "is_refusal", "refusal_kind"]
