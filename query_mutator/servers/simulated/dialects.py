"""The two dialects that a simulated server speaks: how calls are read and generations are told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from query_mutator.servers.simulated.answers import stable_hash
from query_mutator.servers.simulated.calls import (
    ApiError,
    GenerationRequest,
    check_options,
    expect,
    json_key,
    parse_keep_alive,
    read_messages,
)


@dataclass(slots=True)
class Generation:
    """What a model made of a call, with durations in nanoseconds."""

    tokens: list[str]
    done_reason: str | None
    """stop or length; None for a generation that broke off."""
    prompt_tokens: int
    wait_ns: int
    load_ns: int
    prompt_ns: int
    eval_ns: int

    @property
    def text(self) -> str:
        return "".join(self.tokens)

    def durations(self) -> dict[str, int]:
        """Return Ollama's fields: what total exceeds the others by was spent waiting for a slot."""
        return {
            "total_duration": self.wait_ns + self.load_ns + self.prompt_ns + self.eval_ns,
            "load_duration": self.load_ns,
            "prompt_eval_count": self.prompt_tokens,
            "prompt_eval_duration": self.prompt_ns,
            "eval_count": len(self.tokens),
            "eval_duration": self.eval_ns,
        }


class OllamaDialect:
    """/api/generate and /api/chat: NDJSON that streams unless told otherwise."""

    stream_type = "application/x-ndjson"

    def __init__(self, chat: bool) -> None:
        self._chat = chat

    def read(self, body: dict[str, Any]) -> GenerationRequest:
        """Return the call in a request's body."""
        model = expect(body, "model", str, "")
        if self._chat and not model:
            raise ApiError(400, "model is required")
        if self._chat:
            messages = read_messages(body)
        else:
            messages = [("user", expect(body, "prompt", str, ""))] if body.get("prompt") else []
            if system := expect(body, "system", str, ""):
                messages.insert(0, ("system", system))
        stream = expect(body, "stream", bool, True)
        options = check_options(expect(body, "options", dict, {}))
        return GenerationRequest(
            model=model,
            messages=messages,
            stream=stream,
            options=options,
            keep_alive_s=parse_keep_alive(body.get("keep_alive")),
            json_key=json_key(body.get("format")),
        )

    def piece(self, call: GenerationRequest, text: str) -> bytes:
        """Return a stream's line for some of the text."""
        return json_bytes({**self._told(call, text), "done": False}) + b"\n"

    def last(self, call: GenerationRequest, generation: Generation) -> bytes:
        """Return a stream's last line; nothing for a generation that broke off."""
        if generation.done_reason is None:
            return b""
        return json_bytes(self._told(call, "") | self._ending(generation)) + b"\n"

    def whole(self, call: GenerationRequest, generation: Generation) -> dict[str, Any]:
        """Return the answer to a call that does not stream."""
        return self._told(call, generation.text) | self._ending(generation)

    def loaded(self, call: GenerationRequest, reason: str) -> dict[str, Any]:
        """Return the answer to a call without a prompt, which loads or unloads its model."""
        return {**self._told(call, ""), "done": True, "done_reason": reason}

    def error(self, status: int, text: str) -> dict[str, Any]:
        """Return the body of an error."""
        return {"error": text}

    def error_line(self, text: str) -> bytes:
        """Return a stream's line for an error."""
        return json_bytes({"error": text}) + b"\n"

    def _told(self, call: GenerationRequest, text: str) -> dict[str, Any]:
        head = {"model": call.model, "created_at": timestamp()}
        if self._chat:
            return head | {"message": {"role": "assistant", "content": text}}
        return head | {"response": text}

    def _ending(self, generation: Generation) -> dict[str, Any]:
        if generation.done_reason is None:
            return {"done": False}
        return {"done": True, "done_reason": generation.done_reason} | generation.durations()


class OpenAIDialect:
    """/v1/chat/completions and /v1/completions: server-sent events where streaming is asked for."""

    stream_type = "text/event-stream"

    def __init__(self, chat: bool) -> None:
        self._chat = chat

    def read(self, body: dict[str, Any]) -> GenerationRequest:
        """Return the call in a request's body."""
        model = expect(body, "model", str, "")
        if not model:
            raise ApiError(400, "model is required")
        if self._chat:
            messages = read_messages(body)
            if not messages:
                raise ApiError(400, "[] is too short - 'messages'")
        else:
            prompt = body.get("prompt", "")
            messages = [("user", prompt if isinstance(prompt, str) else "".join(map(str, prompt)))]
        stop = body.get("stop")
        options = {
            "num_predict": body.get("max_completion_tokens") or body.get("max_tokens"),
            "temperature": body.get("temperature"),
            "seed": body.get("seed"),
            "stop": [stop] if isinstance(stop, str) else stop,
        }
        response_format = expect(body, "response_format", dict, {})
        return GenerationRequest(
            model=model,
            messages=messages,
            stream=expect(body, "stream", bool, False),
            options=check_options(
                {name: value for name, value in options.items() if value is not None}
            ),
            json_key="answer" if str(response_format.get("type")).startswith("json") else None,
            include_usage=bool(expect(body, "stream_options", dict, {}).get("include_usage")),
        )

    def piece(self, call: GenerationRequest, text: str) -> bytes:
        """Return a stream's event for some of the text."""
        return self._event(call, [self._choice(text, None, streamed=True)])

    def last(self, call: GenerationRequest, generation: Generation) -> bytes:
        """Return a stream's last events; for a generation that broke off only the end mark."""
        if generation.done_reason is None:
            return b"data: [DONE]\n\n"
        last = self._event(call, [self._choice("", generation.done_reason, streamed=True)])
        if call.include_usage:
            last += self._event(call, [], usage=usage(generation))
        return last + b"data: [DONE]\n\n"

    def whole(self, call: GenerationRequest, generation: Generation) -> dict[str, Any]:
        """Return the answer to a call that does not stream."""
        choice = self._choice(generation.text, generation.done_reason, streamed=False)
        kind = "chat.completion" if self._chat else "text_completion"
        return self._told(call, kind, [choice]) | {"usage": usage(generation)}

    def loaded(self, call: GenerationRequest, reason: str) -> dict[str, Any]:
        """Return the answer to a call without a prompt."""
        return self.whole(call, Generation([], "stop", 0, 0, 0, 0, 0))

    def error(self, status: int, text: str) -> dict[str, Any]:
        """Return the body of an error."""
        kind = {400: "invalid_request_error", 404: "not_found_error"}.get(status, "api_error")
        return {"error": {"message": text, "type": kind, "param": None, "code": None}}

    def error_line(self, text: str) -> bytes:
        """Return a stream's event for an error."""
        return b"data: %b\n\n" % json_bytes(self.error(500, text))

    def _choice(self, text: str, reason: str | None, *, streamed: bool) -> dict[str, Any]:
        said: dict[str, Any] = {"text": text}
        if self._chat:
            said = {"delta" if streamed else "message": {"role": "assistant", "content": text}}
        return {"index": 0, **said, "finish_reason": reason}

    def _event(
        self, call: GenerationRequest, choices: list[dict[str, Any]], **more: object
    ) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        return b"data: %b\n\n" % json_bytes(self._told(call, kind, choices) | more)

    def _told(
        self, call: GenerationRequest, kind: str, choices: list[dict[str, Any]]
    ) -> dict[str, Any]:
        prefix = "chatcmpl" if self._chat else "cmpl"
        return {
            "id": f"{prefix}-{stable_hash(call.content) % 1000}",
            "object": kind,
            "created": int(datetime.now(UTC).timestamp()),
            "model": call.model,
            "system_fingerprint": "fp_ollama",
            "choices": choices,
        }


Dialect = OllamaDialect | OpenAIDialect


def json_bytes(value: object) -> bytes:
    """Return compact JSON in UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair can only be sent escaped
        return json.dumps(value, separators=(",", ":")).encode()


def timestamp() -> str:
    """Return the time as Ollama writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def usage(generation: Generation) -> dict[str, int]:
    """Return the token counts of an OpenAI answer."""
    prompt, completion = generation.prompt_tokens, len(generation.tokens)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
