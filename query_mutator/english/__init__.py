"""What can be said about an English question, and changed in it, without a model."""

from query_mutator.english.asides import drop_asides
from query_mutator.english.asking import ask_in_full
from query_mutator.english.chat import calm_down, drop_chatter, write_out
from query_mutator.english.filler import drop_filler
from query_mutator.english.names import capitalise_names
from query_mutator.english.spelling import correct_spelling
from query_mutator.english.typing import correct_typing

__all__ = [
    "ask_in_full",
    "calm_down",
    "capitalise_names",
    "correct_spelling",
    "correct_typing",
    "drop_asides",
    "drop_chatter",
    "drop_filler",
    "write_out",
]
