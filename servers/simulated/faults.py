"""Faults on demand: what can go wrong with a model server, by rule."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from servers.simulated.answers import stable_uniform
from servers.simulated.http import Connection, Request, Response, head

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
}
"""Kinds that are answered with an error status: the status and Ollama's text."""

IN_THE_ANSWER = frozenset({"stream_error", "unfinished"})
"""Kinds that spoil the generation itself, so that it still takes its slot and its time."""

ON_THE_WIRE = frozenset({"reset", "hang", "drip", "truncated", "malformed", "huge"})
"""Kinds that spoil how an answer is sent."""

KINDS = frozenset(ERRORS) | IN_THE_ANSWER | ON_THE_WIRE | {"empty", "html"}


@dataclass(frozen=True)
class Fault:
    """A rule: which requests go wrong, and how.

    | kind | what the client sees |
    | --- | --- |
    | not_found, bad_request, busy | Ollama's 404, 400, 503 |
    | load_failure, process_terminated, runner_crash | Ollama's 500s |
    | rate_limited | 429 with Retry-After |
    | stream_error | half of a stream, then a line with `error`; a 500 without streaming |
    | unfinished | `done: false` and no durations, with half of the text |
    | reset | the connection is reset before any answer |
    | hang | no byte, ever |
    | drip | the answer's body, a byte every `interval_s` |
    | truncated | half of the body that Content-Length announces, then the connection closes |
    | malformed | half of the JSON, with the length to match |
    | empty | 200 and no body |
    | html | a proxy's 502 page |
    | huge | the answer, followed by `size_bytes` of spaces |

    `truncated`, `malformed`, `drip` and `huge` spoil the real answer, after its real latency.
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
        self._seen: Counter[bytes] = Counter()

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
            self._seen[request.body] += 1
            draw = stable_uniform("fault", fault.seed, request.body, self._seen[request.body])
            if draw >= fault.probability:
                return False
        self._carried_out += 1
        return True


async def send_spoilt(
    fault: Fault,
    request: Request,
    connection: Connection,
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
    if fault.kind == "malformed":
        response.body = body[: len(body) // 2]
        await connection.send(request, response)
    elif fault.kind == "truncated":
        await connection.write(head(request, response, len(body)) + body[: len(body) // 2])
        connection.close()
    elif fault.kind == "drip":
        await connection.write(head(request, response, len(body)))
        for index in range(len(body)):
            await connection.write(body[index : index + 1])
            await asyncio.sleep(fault.interval_s)
    else:
        await connection.write(head(request, response, len(body) + fault.size_bytes) + body)
        for start in range(0, fault.size_bytes, 65_536):
            await connection.write(b" " * min(65_536, fault.size_bytes - start))
