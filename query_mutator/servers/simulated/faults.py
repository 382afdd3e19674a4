"""Faults on demand: what can go wrong with a model server, by rule."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from query_mutator.servers.simulated.answers import stable_hash, stable_uniform
from query_mutator.servers.simulated.http import ClientConnection, Request, Response, head

BUSY_TEXT = "server busy, please try again.  maximum pending requests exceeded"
RUNNER_STOPPED_TEXT = (
    "model runner has unexpectedly stopped, this may be due to resource limitations or an internal "
    "error, check ollama server logs for details"
)
HTML_PAGE = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n"
    b"</body>\r\n</html>\r\n"
)

ERRORS: dict[str, tuple[int, str]] = {
    "not_found": (404, "model '{model}' not found"),
    "bad_request": (400, "invalid character 'x' looking for beginning of value"),
    "busy": (503, BUSY_TEXT),
    "load_failure": (
        500,
        "model requires more system memory (9.3 GiB) than is available (4.1 GiB)",
    ),
    "process_terminated": (500, "llama runner process has terminated: signal: killed"),
    "runner_crash": (500, RUNNER_STOPPED_TEXT),
    "rate_limited": (429, "too many requests"),
    "closed_request": (499, "client closed request"),
    "late_error": (200, RUNNER_STOPPED_TEXT),
}
"""Kinds that are answered with an error: the status and Ollama's text."""

HOSTILE_TEXT = "\x1b[2J\x1b]0;owned\x07 \x00 \ud83d \u202e<script>alert(1)</script>\r\n{1+1} "
"""What no text should be able to do anything with: it stands before the words of an answer."""

NESTED = 20_000
"""Brackets within brackets: more than a parser that calls itself can go down."""

BODIES: dict[str, bytes] = {
    "empty": b"",
    "bare": b"{}",
    "deep": b'{"message":' + b"[" * NESTED + b"]" * NESTED + b"}",
    "wrong_types": (
        b'{"model":[],"message":{"role":1,"content":{"text":7}},"done":"yes","done_reason":{},'
        b'"total_duration":"soon","eval_count":null,"usage":3,'
        b'"choices":[{"message":{"content":{"text":7}},"finish_reason":1}]}'
    ),
}
"""Kinds that are answered with 200 and a body that holds no answer."""

ELSEWHERE = "http://192.0.2.1/"
"""Where a redirect leads: an address that is nobody's (RFC 5737)."""

IN_THE_ANSWER = frozenset({"stream_error", "unfinished", "hostile_text"})
"""Kinds that spoil the generation itself, so that it still takes its slot and its time."""

ON_THE_WIRE = frozenset(
    {"reset", "hang", "stall", "drip", "header_drip", "truncated", "malformed", "huge"}
)
"""Kinds that spoil how an answer is sent."""

KINDS = frozenset(ERRORS) | frozenset(BODIES) | IN_THE_ANSWER | ON_THE_WIRE | {"html", "redirect"}


@dataclass(frozen=True)
class Fault:
    """A rule: which requests go wrong, and how.

    | kind | what the client sees |
    | --- | --- |
    | not_found, bad_request, busy | Ollama's 404, 400, 503 |
    | load_failure, process_terminated, runner_crash | Ollama's 500s |
    | rate_limited | 429 with Retry-After |
    | closed_request | Ollama's 499: it believes that the client has gone |
    | late_error | 200 and an object with `error`, as after the first byte of a stream |
    | stream_error | half of a stream, then a line with `error`; a 500 without streaming |
    | unfinished | `done: false` and no durations, with half of the text |
    | reset | the connection is reset before any answer |
    | hang | no byte, ever, while the pages that tell of health stay green |
    | stall | half of the answer, then no byte, ever |
    | drip | the answer's body, a byte every `interval_s` |
    | header_drip | the answer with its head, a byte every `interval_s` from the first one on |
    | truncated | half of the body that Content-Length announces, then the connection closes |
    | malformed | half of the JSON, with the length to match |
    | empty, bare | 200 and no body, or an object without anything |
    | deep | 200 and an object that is nested deeper than a parser can go |
    | wrong_types | 200 and an answer with a wrong type in every field |
    | hostile_text | the answer, with NUL, ANSI sequences, half a surrogate and mark-up before it |
    | html | a proxy's 502 page |
    | redirect | 307 to an address that is nobody's |
    | huge | the answer, followed by `size_bytes` of spaces |

    What spoils the sending of an answer spoils the real one, after its real latency. Three more
    faults are not rules: a prompt beyond num_ctx is cut without a word, as with Ollama; a full
    queue is `max_queue`; a slot that a lost client still holds is `disconnect_frees_slot`.
    """

    kind: str
    path: str | None = None
    """A path or a pattern such as "/api/*"; None stands for every generation path."""
    model: str | None = None
    """The model that the request names; None stands for any."""
    calls: Collection[int] | None = None
    """Numbers, from 1, among the requests that match path and model; None stands for all."""
    probability: float = 1.0
    seed: int = 0
    """Draws depend on it, on the request's body and on how often that body came, not on order."""
    times: int | None = None
    """How often the rule is carried out at most."""
    text: str | None = None
    """The error's text, in place of Ollama's."""
    retry_after_s: float = 1.0
    interval_s: float = 1.0
    size_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"unknown fault {self.kind!r}; the kinds are {', '.join(sorted(KINDS))}"
            )

    def error_text(self, model: str) -> str:
        """Return the text of the error that the fault stands for."""
        return self.text or ERRORS.get(self.kind, (500, RUNNER_STOPPED_TEXT))[1].format(model=model)


class FaultRules:
    """The rules in force and how often each was met; safe to change from any thread."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._lock = threading.Lock()
        self.replace(faults)

    def replace(self, faults: Iterable[Fault]) -> None:
        """Put other rules in force, with counts that start at nought."""
        with self._lock:
            self._rules = [_Rule(fault) for fault in faults]

    def add(self, fault: Fault) -> None:
        """Put one more rule in force, after the others."""
        with self._lock:
            self._rules.append(_Rule(fault))

    def pick(self, request: Request, model: str, is_generation: bool) -> Fault | None:
        """Return the first fault that befalls the request, if any."""
        if not self._rules:
            return None
        with self._lock:
            for rule in self._rules:
                if rule.strikes(request, model, is_generation):
                    return rule.fault
        return None


class _Rule:
    """A fault with its counts."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self._matched = 0
        self._carried_out = 0
        self._seen: Counter[int] = Counter()
        """How often each body came, by its hash: a long run sends many."""

    def strikes(self, request: Request, model: str, is_generation: bool) -> bool:
        fault = self.fault
        on_path = is_generation if fault.path is None else fnmatchcase(request.path, fault.path)
        if not on_path or fault.model not in (None, model):
            return False
        self._matched += 1
        if fault.calls is not None and self._matched not in fault.calls:
            return False
        if fault.times is not None and self._carried_out >= fault.times:
            return False
        if fault.probability < 1.0:
            # Counting each body by itself gives a retry a draw of its own, whatever else arrives.
            body = stable_hash(request.body)
            self._seen[body] += 1
            draw = stable_uniform("fault", fault.seed, body, self._seen[body])
            if draw >= fault.probability:
                return False
        self._carried_out += 1
        return True


async def send_spoilt(
    fault: Fault,
    request: Request,
    connection: ClientConnection,
    answer: Callable[[], Awaitable[Response]],
) -> None:
    """Carry out a fault on the wire; most spoil the real answer, which they ask for."""
    if fault.kind == "reset":
        connection.reset()
        return
    if fault.kind == "hang":
        await asyncio.get_running_loop().create_future()
    response = await answer()
    body = await response.collect()
    if fault.kind == "stall":
        await connection.write(head(request, response, len(body)) + body[: len(body) // 2])
        await asyncio.get_running_loop().create_future()
    elif fault.kind == "malformed":
        response.body = body[: len(body) // 2]
        await connection.send(request, response)
    elif fault.kind == "truncated":
        await connection.write(head(request, response, len(body)) + body[: len(body) // 2])
        connection.close()
    elif fault.kind in ("drip", "header_drip"):
        announced = head(request, response, len(body))
        if fault.kind == "drip":
            await connection.write(announced)
        else:
            body = announced + body
        for index in range(len(body)):
            await connection.write(body[index : index + 1])
            await asyncio.sleep(fault.interval_s)
    else:
        await connection.write(head(request, response, len(body) + fault.size_bytes) + body)
        for sent in range(0, fault.size_bytes, 65_536):
            await connection.write(b" " * min(65_536, fault.size_bytes - sent))
