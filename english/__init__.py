"""What can be said about an English question, and changed in it, without a model."""

from english.asking import ask_in_full
from english.filler import drop_filler
from english.names import capitalise_names
from english.spelling import correct_spelling

__all__ = ["ask_in_full", "capitalise_names", "correct_spelling", "drop_filler"]
