"""The OpenAI-compatible API of llama.cpp, vLLM and LM Studio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from query_mutator.models.calls import Call, CallFailedError, Reply
from query_mutator.models.dialects.base import count, listed, malformed, number, text_of, vectors
from query_mutator.models.http import HttpServer

MOST_SLOTS = 10_000
"""A server that tells of more tells nothing."""


class OpenAIDialect:
    """`/v1/chat/completions` without streaming."""

    name = "openai"
    tells_queue_wait = False

    def understood_by(self, http: HttpServer, *, timeout_s: float) -> bool:
        return "data" in http.get("/v1/models", timeout_s=timeout_s)

    def list_models(self, http: HttpServer) -> dict[str, str]:
        return {model["id"]: "" for model in listed(http.get("/v1/models").get("data"), "id")}

    def system_prompt(self, http: HttpServer, model: str) -> str:
        return ""

    def count_slots(self, http: HttpServer) -> int | None:
        try:
            slots = http.get("/props").get("total_slots")  # llama.cpp's own page
        except CallFailedError:
            return None
        return int(number(slots, MOST_SLOTS)) or None

    def same_model(self, wanted: str, offered: str) -> bool:
        return wanted == offered

    def chat_request(self, call: Call) -> tuple[str, dict[str, Any]]:
        payload: dict[str, Any] = {
            "model": call.model,
            "messages": [dict(message) for message in call.messages],
            "max_tokens": call.max_tokens,
            "temperature": call.temperature,
            "seed": call.seed,
        }
        if call.stop:
            payload["stop"] = list(call.stop)
        return "/v1/chat/completions", payload

    def read_chat(self, body: dict[str, Any]) -> Reply:
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise malformed("choices")
        message = choices[0].get("message")
        if not isinstance(message, dict):
            raise malformed("message")
        content = message.get("content")
        if content is not None and not isinstance(content, str):
            raise malformed("message.content")
        if choices[0].get("finish_reason", "stop") is None:
            raise CallFailedError("truncated", "the server gave up in mid-answer", retryable=False)
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Reply(
            text=text_of(content),
            cut=choices[0].get("finish_reason") == "length",
            prompt_tokens=count(usage.get("prompt_tokens")),
            completion_tokens=count(usage.get("completion_tokens")),
        )

    def embed_request(
        self, model: str, texts: Sequence[str], *, num_ctx: int
    ) -> tuple[str, dict[str, Any]]:
        return "/v1/embeddings", {"model": model, "input": list(texts)}

    def read_embeddings(self, body: dict[str, Any]) -> list[list[float]]:
        data = body.get("data")
        if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
            raise malformed("data")
        ordered = sorted(data, key=lambda row: number(row.get("index"), len(data)))
        return vectors([row.get("embedding") for row in ordered])

    def missing_model_hint(self, model: str) -> str:
        return "start the server with that one"
