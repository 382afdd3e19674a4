"""What a person sees of a training, and how they end it early."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from query_mutator.base.terminal import progress_bar

RECENT_STEPS = 20
SIGNALS = (signal.SIGINT, signal.SIGTERM)
EXIT_CODE = 130


class Progress:
    """A bar with loss, tokens a second and the time left; looks are lines above it."""

    def __init__(
        self, num_steps: int, done_steps: int, *, seconds: float = 0.0, learning: float = 0.0
    ) -> None:
        self._bar = progress_bar(num_steps, done_steps, unit=" steps")
        self._num_steps = num_steps
        self._began = time.monotonic() - seconds
        self._looked = seconds - learning
        """Seconds that went into looks."""
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT_STEPS)
        self._recent.append((self.learning_seconds, 0))
        self._tokens = 0

    @property
    def seconds(self) -> float:
        """Since the run began, without the time between a stop and its resumption."""
        return time.monotonic() - self._began

    @property
    def learning_seconds(self) -> float:
        """The same without looks."""
        return self.seconds - self._looked

    @property
    def tokens_per_second(self) -> float:
        """In the last steps, looks apart."""
        (first, before), (last, tokens) = self._recent[0], self._recent[-1]
        return (tokens - before) / (last - first) if last > first else 0.0

    def step(self, loss: float, tokens: int, step: int, num_steps: int) -> None:
        """A step has ended."""
        self._tokens += tokens
        self._recent.append((self.learning_seconds, self._tokens))
        self._bar.set_description_str(
            f"loss {loss:.3f} {self.tokens_per_second:.0f} tokens/s", refresh=False
        )
        self._bar.update()

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """While it lasts, nothing is learned."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._looked += time.monotonic() - began

    def look(self, look: dict[str, float]) -> None:
        """A line of figures."""
        from tqdm import tqdm

        parts = [f"step {look['step']:.0f}/{self._num_steps or '…'}", f"loss {look['loss']:.3f}"]
        if "heldout_loss" in look:
            parts.append(f"held-out {look['heldout_loss']:.4f}")
        if "exact_rewrites" in look:
            parts.append(f"exact {look['exact_rewrites']:.0%}")
        parts.append(f"{look['tokens_per_second']:.0f} tokens/s")
        tqdm.write(f"{', '.join(parts)}, {self.seconds:.0f} s", file=sys.stderr)

    def close(self) -> None:
        """Takes the bar away."""
        self._bar.close()


class Stopping:
    """While its block runs, the first Ctrl-C or SIGTERM asks to end after the step under way.

    The second ends the process at once.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stopping:
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # so wants who starts `nohup … &`
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            os._exit(EXIT_CODE)
        self.asked = True
        with contextlib.suppress(OSError, ValueError, AttributeError):
            # Not by print: the interrupted code may be inside of one.
            os.write(sys.stderr.fileno(), b"\nstopping after this step; again: at once\n")
