"""Reads the transition log of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import DEEPEST, parse_json, read_lines
from query_mutator.runs.directory import TRANSITIONS

LARGEST = 1e15
TEXTS = (
    "question_id",
    "operator",
    "original_query",
    "query",
    "rewritten_query",
    "previous_answer",
    "answer",
)
SCORES = ("previous_score", "score", "reward")


def read_transitions(run: str | Path) -> Iterator[dict[str, Any]]:
    """The transitions of a run, in order; a last line that is not yet whole is none of them."""
    path = Path(run) / TRANSITIONS
    for number, line in enumerate(read_lines(path, "the log of a run,"), 1):
        if not line.endswith(b"\n"):  # being written, or cut off with the process that wrote it
            return
        try:
            transition = parse_json(line, deepest=DEEPEST)
        except ValueError:
            transition = None
        if not isinstance(transition, dict) or not _is_whole(transition):
            raise UserError(f"{path}, line {number} is damaged")
        yield transition


def _is_whole(transition: dict[str, Any]) -> bool:
    """Whether it holds all that is read of it, in the kinds that it was written with."""
    failed = transition.get("failed")
    scores = [transition.get(name, "missing") for name in SCORES]
    episode_return = transition.get("episode_return", "missing")
    return (
        isinstance(failed, bool)
        and all(isinstance(transition.get(name), str) for name in TEXTS)
        and _is_number(transition.get("update"))
        # What failed has no score.
        and all(_is_number(score) or (failed and score is None) for score in scores)
        and (episode_return is None or _is_number(episode_return))
    )


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= LARGEST


def returns_by_update(transitions: list[dict[str, Any]]) -> tuple[list[int], list[list[float]]]:
    """The environment steps at the end of each update, and the returns of its episodes."""
    returns: dict[int, list[float]] = defaultdict(list)
    steps: dict[int, int] = defaultdict(int)
    for transition in transitions:
        steps[transition["update"]] += 1
        if transition["episode_return"] is not None:
            returns[transition["update"]].append(transition["episode_return"])
    ends, total = [], 0
    for update in sorted(steps):
        total += steps[update]
        ends.append(total)
    return ends, [returns[update] for update in sorted(steps)]
