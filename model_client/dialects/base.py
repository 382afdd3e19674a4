"""What a dialect must know: how to recognise its server, ask it, and read its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from model_client.calls import Call, CallFailedError, Reply
from model_client.http import HttpServer


class Dialect(Protocol):
    """One way of speaking to a model server."""

    name: str
    tells_queue_wait: bool
    """Whether its answers tell how long they waited for a slot."""

    def understood_by(self, http: HttpServer, *, timeout_s: float) -> bool:
        """Whether the server at `http` speaks this dialect."""

    def list_models(self, http: HttpServer) -> dict[str, str]:
        """The models the server has, each with a digest of its weights ("" where untold)."""

    def count_slots(self, http: HttpServer) -> int | None:
        """How many calls the server serves at once, where it tells."""

    def same_model(self, wanted: str, offered: str) -> bool:
        """Whether the name a user typed means the model the server lists."""

    def chat_request(self, call: Call) -> tuple[str, dict[str, Any]]:
        """The path and the JSON body that ask for `call`."""

    def read_chat(self, body: dict[str, Any]) -> Reply:
        """The reply in a server's JSON; raises `CallFailedError` where there is none."""

    def embed_request(
        self, model: str, texts: Sequence[str], *, num_ctx: int
    ) -> tuple[str, dict[str, Any]]:
        """The path and the JSON body that ask for embeddings."""

    def read_embeddings(self, body: dict[str, Any]) -> list[list[float]]:
        """One vector for each text asked for."""

    def missing_model_hint(self, model: str) -> str:
        """What a user can do to get `model` onto the server."""


def listed(value: Any, key: str) -> list[dict[str, Any]]:
    """The objects with a text under `key` in what should be a list of them."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict) and isinstance(item.get(key), str)]


def count(value: Any) -> int:
    """A number of tokens, 0 where the server tells none."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e12 else 0


def malformed(what: str) -> CallFailedError:
    """The error for an answer that lacks what its dialect promises."""
    return CallFailedError("malformed", f"the answer has no {what}", retryable=True)
