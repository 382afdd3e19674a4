"""What a dialect must know: how to recognise its server, ask it, and read its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from query_mutator.models.calls import Call, CallFailedError, Reply
from query_mutator.models.http import HttpServer

MOST_TOKENS = 1e12
LARGEST_ENTRY = 1e18
"""Of an embedding: its square is still a float32."""
LONGEST_TOKEN = 256
"""Characters: the longest that vocabularies hold are runs of spaces, half as long."""


class Dialect(Protocol):
    """One way of speaking to a model server."""

    name: str
    tells_queue_wait: bool
    """Whether its answers tell how long they waited for a slot."""

    def understood_by(self, http: HttpServer, *, timeout_s: float) -> bool:
        """Whether the server at `http` speaks this dialect."""

    def list_models(self, http: HttpServer) -> dict[str, str]:
        """The models the server has, each with a digest of its weights ("" where untold)."""

    def system_prompt(self, http: HttpServer, model: str) -> str:
        """What the server says to the model before a chat that has no system's turn; "" if untold.

        Raises `CallFailedError`.
        """

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


def text_of(value: Any) -> str:
    """The text in a field, "" for anything else."""
    return value if isinstance(value, str) else ""


def number(value: Any, most: float) -> float:
    """A number from 0 to `most`, 0 for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= most else 0.0


def count(value: Any) -> int:
    """A number of tokens, 0 where the server tells none."""
    return int(number(value, MOST_TOKENS))


def vectors(rows: Any) -> list[list[float]]:
    """Rows of finite numbers, all of one length; raises `CallFailedError` for anything else."""
    if not isinstance(rows, list) or not all(isinstance(row, list) and row for row in rows):
        raise malformed("embeddings")
    if len({len(row) for row in rows}) > 1:
        raise malformed("embeddings of one length")
    for row in rows:
        if not all(type(value) in (int, float) and abs(value) <= LARGEST_ENTRY for value in row):
            raise malformed("embeddings that are numbers")
    return [[float(value) for value in row] for row in rows]


def bounded(reply: Reply, max_tokens: int) -> Reply:
    """The reply as text that may go on: no longer than its tokens can be, no half characters.

    >>> bounded(Reply("a" * 1000), max_tokens=2).cut
    True
    """
    longest = LONGEST_TOKEN * max_tokens
    text = reply.text[:longest].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return replace(reply, text=text, cut=reply.cut or len(reply.text) > longest)


def malformed(what: str) -> CallFailedError:
    """The error for an answer that lacks what its dialect promises."""
    return CallFailedError("malformed", f"the answer has no {what}", retryable=True)
