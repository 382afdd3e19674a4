"""What can be said about an English question, and changed in it, without a model."""

from english.filler import drop_filler
from english.spelling import correct_spelling

__all__ = ["correct_spelling", "drop_filler"]
