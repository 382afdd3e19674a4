"""Where the time of an update went: what each of the calls that could be under way was for."""

from __future__ import annotations

from collections.abc import Mapping

from query_mutator.models.client import CallCounts
from query_mutator.runs import tags

PURPOSES = {"mutation": tags.TIME_MUTATION, "answer": tags.TIME_TARGET, "judge": tags.TIME_JUDGE}


def time_metrics(
    before: CallCounts,
    collected: CallCounts,
    learned: CallCounts,
    *,
    slots: int,
    collect_s: float,
    embed_s: float,
    learn_s: float,
) -> dict[str, float]:
    """The seconds of all slots, a slot being a call that may be under way; parts of one whole.

    While the policy learns, slots without a call are put down to it. While texts are embedded, as
    many slots are taken to be free as are on average while steps are collected.
    """
    spent = _between(before, learned)
    busy_while_learning = sum(_between(collected, learned).values())
    learning = max(0.0, slots * learn_s - busy_while_learning)
    # What ends within an update may have begun before it: the sum can be above all there is.
    free = max(0.0, slots * (collect_s + learn_s) - sum(spent.values()) - learning)
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
