"""What was meant by a question that was typed in haste or spelt by ear."""

from query_mutator.english.typing.sentence import correct_typing

__all__ = ["correct_typing"]
