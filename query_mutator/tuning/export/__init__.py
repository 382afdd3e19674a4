"""A trained adapter in the forms that servers take: GGUF for llama.cpp, a model for Ollama."""

from __future__ import annotations

from query_mutator.tuning.export.exporting import (
    Exported,
    check_can_be_merged,
    export_adapter,
    is_exported,
)
from query_mutator.tuning.export.no_form import NoFormError

__all__ = ["Exported", "NoFormError", "check_can_be_merged", "export_adapter", "is_exported"]
