"""The languages model servers speak. A new one is a file here and a name in `DIALECTS`."""

from __future__ import annotations

from query_mutator.models.calls import CallFailedError
from query_mutator.models.dialects.base import Dialect
from query_mutator.models.dialects.ollama import OllamaDialect
from query_mutator.models.dialects.openai import OpenAIDialect
from query_mutator.models.http import HttpServer

__all__ = ["DIALECTS", "Dialect", "OllamaDialect", "OpenAIDialect", "detect_dialect"]

# Asked in this order: Ollama serves the OpenAI paths too, and its own API tells more.
DIALECTS: tuple[Dialect, ...] = (OllamaDialect(), OpenAIDialect())


def detect_dialect(http: HttpServer, *, timeout_s: float) -> tuple[Dialect | None, str]:
    """The first dialect the server understands, or None and why not; a dead server raises."""
    why_not = ""
    for dialect in DIALECTS:
        try:
            if dialect.understood_by(http, timeout_s=timeout_s):
                return dialect, ""
            why_not = "another answer"
        except CallFailedError as error:
            if error.failure.kind in {"connection", "timeout"}:
                raise
            why_not = error.failure.reason
    return None, why_not
