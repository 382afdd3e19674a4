"""A call to a model, and the two ways it can end: an answer, or a failure that says why."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Message = Mapping[str, str]
OUTAGE = "outage"
"""The kind of failure of a call that waited in vain for a server to come back."""


Result = TypeVar("Result")


class Request(Generic[Result]):
    """What a flow may wait for: `result = await request` hands it to whoever runs the flow."""

    def __await__(self) -> Generator[Request[Result], Result, Result]:
        return (yield self)


@dataclass(frozen=True)
class Call(Request["Outcome"]):
    """One chat request, complete: two equal calls deserve the same answer."""

    purpose: str
    """What the call is for (`mutation`, `answer`, `judge`): names it in counts and logs."""
    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    num_ctx: int = 2048
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What a server answered, in the words that all dialects share."""

    text: str
    cut: bool = False
    """True where the token limit ended the answer."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    queue_s: float = 0.0
    """Time the request waited for a slot, where the server tells."""
    load_s: float = 0.0
    served_s: float = 0.0
    """Time the request held its slot; where the server does not tell, the latency of the call."""


@dataclass(frozen=True)
class Failure:
    """Why a call has no answer: a kind to count by, and a sentence."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """How a call ended. `text` is empty where `failure` is set."""

    reply: Reply
    failure: Failure | None = None
    latency_s: float = 0.0
    attempts: int = 1
    cached: bool = False

    @property
    def text(self) -> str:
        return self.reply.text

    @property
    def failed(self) -> bool:
        return self.failure is not None

    @property
    def is_outage(self) -> bool:
        """Whether it waited for a server that never came back."""
        return self.failure is not None and self.failure.kind == OUTAGE


class CallFailedError(Exception):
    """A single attempt failed; `retryable` says whether another may do better."""

    def __init__(
        self, kind: str, reason: str, *, retryable: bool, retry_after_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.failure = Failure(kind, reason)
        self.retryable = retryable
        self.retry_after_s = retry_after_s
