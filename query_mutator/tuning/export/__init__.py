"""A trained adapter in the forms that servers take: GGUF for llama.cpp, a model for Ollama."""

from __future__ import annotations

from query_mutator.tuning.export.exporting import Exported, export_adapter

__all__ = ["Exported", "export_adapter"]
