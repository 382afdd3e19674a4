"""The generations that clients ask for, read from what they sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from query_mutator.servers.simulated.answers import tokenise

DEFAULT_NUM_CTX = 4096
LOAD_OPTIONS = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread")
INTEGER_OPTIONS = frozenset(
    [
        "num_keep",
        "seed",
        "num_predict",
        "top_k",
        "repeat_last_n",
        "num_ctx",
        "num_batch",
        "num_gpu",
        "main_gpu",
        "num_thread",
    ]
)
FLOAT_OPTIONS = frozenset(
    [
        "top_p",
        "min_p",
        "typical_p",
        "temperature",
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
    ]
)
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class ApiError(Exception):
    """A request that is answered with an error status and a text."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = dict(headers or {})


@dataclass(slots=True)
class GenerationRequest:
    """A generation that a client asks for, in either dialect's terms."""

    model: str
    messages: list[tuple[str, str]]
    """Pairs of role and content."""
    stream: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    """Ollama's options; the other dialect's fields are given their names."""
    keep_alive_s: float | None = None
    json_key: str | None = None
    """Where the client asks for JSON: the key under which the answer goes."""
    include_usage: bool = False

    @property
    def system(self) -> str:
        return next((content for role, content in self.messages if role == "system"), "")

    @property
    def prompt(self) -> str:
        """The last user message, its beginning dropped without a word where it exceeds num_ctx."""
        users = (content for role, content in reversed(self.messages) if role == "user")
        prompt = next(users, "")
        tokens = tokenise(prompt)
        return prompt if len(tokens) <= self.num_ctx else "".join(tokens[-(self.num_ctx // 2) :])

    @property
    def num_ctx(self) -> int:
        return int(self.options.get("num_ctx") or DEFAULT_NUM_CTX)

    @property
    def load_options(self) -> tuple[object, ...]:
        """The options that a loaded model must share with the call."""
        return (self.num_ctx, *(self.options.get(name) for name in LOAD_OPTIONS[1:]))

    @property
    def seed(self) -> int:
        """The sampling seed, 0 where it makes no difference."""
        temperature = self.options.get("temperature")
        if temperature is not None and temperature <= 0:
            return 0
        return max(0, int(self.options.get("seed") or 0))

    @property
    def content(self) -> str:
        """All that the answer and its latency depend on."""
        limit = self.options.get("num_predict")
        return json.dumps([self.model, self.messages, self.seed, limit, self.options.get("stop")])

    @property
    def prompt_tokens(self) -> int:
        """The tokens that the model sees of the messages."""
        count = sum(len(tokenise(content)) for _, content in self.messages)
        return count if count <= self.num_ctx else self.num_ctx // 2


def expect(body: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    """Return a field of a body, or its default; raises a 400 where its type is another."""
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        found = {str: "string", bool: "bool", dict: "object", list: "array"}.get(
            type(value), "number"
        )
        raise ApiError(
            400,
            f"json: cannot unmarshal {found} into Go struct field .{key} of type {kind.__name__}",
        )
    return value


def read_messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the role and the text of each message; parts that are not text are left out."""
    messages = []
    for message in expect(body, "messages", list, []):
        if not isinstance(message, dict):
            raise ApiError(
                400, "json: cannot unmarshal into Go struct field .messages of type Message"
            )
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        messages.append((str(message.get("role", "")), str(content)))
    return messages


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options; raises Ollama's 500 where a known one has a wrong type."""
    for name, value in options.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in INTEGER_OPTIONS and not is_number and value is not None:
            raise ApiError(500, f'option "{name}" must be of type integer')
        if name in FLOAT_OPTIONS and not is_number and value is not None:
            raise ApiError(500, f'option "{name}" must be of type float32')
        if name == "stop" and not isinstance(value, list):
            raise ApiError(500, 'option "stop" must be of type array')
    return options


def parse_keep_alive(value: object) -> float | None:
    """Return seconds, below 0 for ever, from a number or a text such as "5m"; None where unset."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value)
    unsigned = text.removeprefix("-")
    parts = _DURATION_PART.findall(unsigned)
    if (
        unsigned != "0" and "".join(number + unit for number, unit in parts) != unsigned
    ) or not text:
        raise ApiError(400, f'time: invalid duration "{text}"')
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    return -seconds if text.startswith("-") else seconds


def json_key(wanted: object) -> str | None:
    """Return where an answer in JSON goes: a schema's first property, else "answer"."""
    if isinstance(wanted, dict):
        return next(iter(wanted.get("properties") or {}), "answer")
    return "answer" if wanted == "json" else None
