"""Where the time of an update went: what each of the calls that could be under way was for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from query_mutator.models.backend import BackendStatus
from query_mutator.models.client import CallCounts
from query_mutator.models.session import Models
from query_mutator.runs import tags

PURPOSES = {"mutation": tags.TIME_MUTATION, "answer": tags.TIME_TARGET, "judge": tags.TIME_JUDGE}


@dataclass(frozen=True)
class Moment:
    """What had been done at one point of an update."""

    at_s: float
    calls: CallCounts
    servers: Sequence[BackendStatus] = ()
    embedded_s: float = 0.0

    @classmethod
    def of(cls, models: Models) -> Moment:
        """What these models have done by now."""
        client = models.client
        return cls(time.monotonic(), client.counts(), client.servers(), models.encoder.seconds)


@dataclass(frozen=True)
class Phases:
    """An update: steps are collected, then the policy learns from them."""

    began: Moment
    collected: Moment
    learned: Moment

    @property
    def collect_s(self) -> float:
        return self.collected.at_s - self.began.at_s

    @property
    def learn_s(self) -> float:
        return self.learned.at_s - self.collected.at_s


def time_metrics(phases: Phases, *, slots: int) -> dict[str, float]:
    """The seconds of all slots, a slot being a call that may be under way; parts of one whole.

    While the policy learns, slots without a call are put down to it. While texts are embedded, as
    many slots are taken to be free as are on average while steps are collected.
    """
    began, collected, learned = phases.began, phases.collected, phases.learned
    collect_s, learn_s = phases.collect_s, phases.learn_s
    spent = _between(began.calls, learned.calls)
    busy_while_learning = sum(_between(collected.calls, learned.calls).values())
    learning = max(0.0, slots * learn_s - busy_while_learning)
    # What ends within an update may have begun before it: the sum can be above all there is.
    free = max(0.0, slots * (collect_s + learn_s) - sum(spent.values()) - learning)
    embed_s = learned.embedded_s - began.embedded_s
    embedding = free * min(1.0, embed_s / max(collect_s, 1e-9))
    metrics = {PURPOSES[purpose]: seconds for purpose, seconds in spent.items()}
    return metrics | {
        tags.TIME_EMBEDDING: embedding,
        tags.TIME_LEARNING: learning,
        tags.TIME_IDLE: free - embedding,
    }


def _between(before: CallCounts, after: CallCounts) -> dict[str, float]:
    return {
        purpose: _of(after.seconds, purpose) - _of(before.seconds, purpose)
        for purpose in PURPOSES
        if purpose != "judge" or purpose in after.seconds
    }


def _of(seconds: Mapping[str, float], purpose: str) -> float:
    return seconds.get(purpose, 0.0)
