"""What is told of adapters that a GGUF cannot hold."""

from __future__ import annotations

from query_mutator.base.errors import UserError


class NoFormError(UserError):
    """The adapter or its model is of a kind that llama.cpp's adapters lack; no file is at fault."""
