"""What a user may say about the models, and how long the client pauses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PACKAGED_MODEL = "minilm"
BACKOFF_JITTER = 0.25


@dataclass(frozen=True)
class Pauses:
    """How long to wait between two attempts at something that failed."""

    backoff_first_s: float = 0.5
    backoff_limit_s: float = 8.0
    retry_after_limit_s: float = 60.0
    """The longest wait that a server may ask for."""
    probe_first_s: float = 0.5
    probe_limit_s: float = 15.0
    told_after_s: float = 1.0
    """An outage that is over before is not worth a line."""
    embedding_s: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)

    def backoff_s(self, attempt: int, retry_after_s: float | None) -> float:
        """The wait after attempt number `attempt`: what the server asks, or doubling waits."""
        if retry_after_s is not None:
            return min(retry_after_s, self.retry_after_limit_s)
        wait_s = min(self.backoff_first_s * 2.0 ** (attempt - 1), self.backoff_limit_s)
        # Jitter spreads the retries of many threads; nothing learned depends on it: it has no seed.
        return wait_s * random.uniform(1 - BACKOFF_JITTER, 1)


PAUSES = Pauses()


@dataclass(frozen=True)
class ModelSettings:
    """Where the models are, what they are, and how they are asked."""

    server: str | Sequence[str] = "auto"
    mutator_server: Sequence[str] = ()
    target_server: Sequence[str] = ()
    judge_server: Sequence[str] = ()
    """Servers that take a part away from `server`; the judge is else where the target is."""
    mutator_model: str | None = None
    target_model: str | None = None
    judge_model: str | None = None
    embedding_model: str = PACKAGED_MODEL
    rewriter: str | Path | None = None
    """Adapter of the embedded mutator: a file or a directory; None: the shipped one; `none`."""
    contenders: Sequence[str | Path] = ()
    """Adapters to compare, each served beside the embedded mutator."""
    slots: int | None = None
    """Of the embedded server; None: by the machine."""
    timeout_s: float = 60.0
    load_timeout_s: float = 600.0
    """For a model's first call, which may have to load it."""
    retries: int = 2
    max_outage_s: float = 0.0
    """How long calls wait while no server answers; 0: they fail."""
    num_ctx: int = 2048
    max_tokens_mutation: int = 64
    max_tokens_answer: int = 96
    temperature_mutation: float = 0.0
    temperature_answer: float = 0.0
    seed: int = 0
    faithful: bool = True
    """Whether a rewrite that asks something else is refused."""
    cache_file: str | Path | None = None
    group_by_model: bool | None = None
    """Whether two models take turns on a server; None: it is found out."""
    pauses: Pauses = field(default_factory=lambda: PAUSES)
