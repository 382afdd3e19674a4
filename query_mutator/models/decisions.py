"""What becomes of a call whose attempt has failed: decided from what is known, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from query_mutator.models.calls import Failure


class Step(Enum):
    """What to do with a call after a failure."""

    RETRY = auto()
    OTHER_SERVER = auto()
    WAIT = auto()
    """Until a server comes back: the call is as good as one that was not tried."""
    GIVE_UP = auto()


@dataclass(frozen=True)
class Decision:
    """A step, how long to pause before it, and whether the server is left alone from here on."""

    step: Step
    pause_s: float = 0.0
    leave_alone: bool = False


@dataclass(frozen=True)
class View:
    """What is known when an attempt has failed in a way that may pass."""

    failures_here: int
    """How often the server that was asked has failed the call, with this failure."""
    failures_elsewhere: tuple[int, ...]
    """How often each other server that is up and could answer has failed it."""
    is_tried_out: bool
    """Whether every server has failed it as often as it may."""
    is_up: bool
    """False where the server has been left alone meanwhile."""
    is_suspect: bool
    """Whether its failures are such that it should answer a probe before it gets more."""
    may_wait: bool
    backoff_s: float
    hold_s: float
    """How long the server may still be at work on a call that timed out."""

    @property
    def is_alone(self) -> bool:
        return not self.failures_elsewhere


def decide(failure: Failure, view: View) -> Decision:
    """What to do about a failure that may pass."""
    waits = view.is_alone and view.may_wait
    leave_alone = view.is_suspect and (waits or not view.is_alone)
    if waits and (leave_alone or not view.is_up):
        return Decision(Step.WAIT, 0.0, leave_alone)
    if view.is_tried_out:
        return Decision(Step.GIVE_UP, 0.0, leave_alone)
    if not view.is_alone:
        # One that has failed it less is asked at once.
        at_once = min(view.failures_elsewhere) < view.failures_here
        return Decision(Step.OTHER_SERVER, 0.0 if at_once else view.backoff_s, leave_alone)
    if failure.kind == "timeout":
        # The server may still be at work on it: the next attempt takes its place.
        return Decision(Step.RETRY, max(view.backoff_s, view.hold_s), leave_alone)
    return Decision(Step.RETRY, view.backoff_s, leave_alone)
