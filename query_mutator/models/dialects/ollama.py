"""Ollama's native API: it tells token counts and how long a call waited and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from query_mutator.models.calls import Call, CallFailedError, Reply
from query_mutator.models.dialects.base import count, listed, malformed, number, text_of, vectors
from query_mutator.models.http import HttpServer

NANOSECONDS = 1e9
MOST_SECONDS = 7 * 24 * 3600.0
"""No call lasts longer: what tells of more is no duration."""


class OllamaDialect:
    """`/api/chat` without streaming."""

    name = "ollama"
    tells_queue_wait = True

    def understood_by(self, http: HttpServer, *, timeout_s: float) -> bool:
        return "version" in http.get("/api/version", timeout_s=timeout_s)

    def list_models(self, http: HttpServer) -> dict[str, str]:
        models = listed(http.get("/api/tags").get("models"), "name")
        return {model["name"]: text_of(model.get("digest")) for model in models}

    def system_prompt(self, http: HttpServer, model: str) -> str:
        return text_of(http.post("/api/show", {"model": model}).get("system"))

    def count_slots(self, http: HttpServer) -> int | None:
        return None  # nothing in its API tells OLLAMA_NUM_PARALLEL

    def same_model(self, wanted: str, offered: str) -> bool:
        return with_tag(wanted) == with_tag(offered)

    def chat_request(self, call: Call) -> tuple[str, dict[str, Any]]:
        options: dict[str, Any] = {
            "num_predict": call.max_tokens,
            "temperature": call.temperature,
            "seed": call.seed,
            # Any difference in a load-time option reloads the model: the same value for all calls.
            "num_ctx": call.num_ctx,
        }
        if call.stop:
            options["stop"] = list(call.stop)
        return "/api/chat", {
            "model": call.model,
            "messages": [dict(message) for message in call.messages],
            "stream": False,
            # Thinking models think by default and would spend the token limit on it.
            "think": False,
            "options": options,
        }

    def read_chat(self, body: dict[str, Any]) -> Reply:
        message = body.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise malformed("message.content")
        if body.get("done") is not True:
            # The repeat guard ends a generation with 200 and `done: false`.
            raise CallFailedError("truncated", "the server gave up in mid-answer", retryable=False)
        total, load, prompt_eval, eval_ = (
            _seconds(body, key)
            for key in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
        )
        return Reply(
            text=message["content"],
            cut=body.get("done_reason") == "length",
            prompt_tokens=count(body.get("prompt_eval_count")),
            completion_tokens=count(body.get("eval_count")),
            queue_s=max(0.0, total - load - prompt_eval - eval_) if total else 0.0,
            load_s=load,
            served_s=prompt_eval + eval_,
        )

    def embed_request(
        self, model: str, texts: Sequence[str], *, num_ctx: int
    ) -> tuple[str, dict[str, Any]]:
        options = {"num_ctx": num_ctx}
        return "/api/embed", {"model": model, "input": list(texts), "options": options}

    def read_embeddings(self, body: dict[str, Any]) -> list[list[float]]:
        return vectors(body.get("embeddings"))

    def missing_model_hint(self, model: str) -> str:
        return f"get it with: ollama pull {model}"


def with_tag(name: str) -> str:
    """A model name as Ollama lists it: `llama3.2` means `llama3.2:latest`.

    >>> with_tag("llama3.2"), with_tag("hf.co/me/model:Q4")
    ('llama3.2:latest', 'hf.co/me/model:Q4')
    """
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def _seconds(body: dict[str, Any], key: str) -> float:
    return number(body.get(key), MOST_SECONDS * NANOSECONDS) / NANOSECONDS
