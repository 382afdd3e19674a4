"""Reads the transition log of a run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from errors import UserError
from training.run_directory import TRANSITIONS

NEEDED = {
    "update",
    "episode_return",
    "question_id",
    "operator",
    "original_query",
    "query",
    "rewritten_query",
    "previous_answer",
    "answer",
    "previous_score",
    "score",
    "reward",
    "failed",
}


def read_transitions(run: str | Path) -> Iterator[dict[str, Any]]:
    """The transitions of a run, in order."""
    path = Path(run) / TRANSITIONS
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    transition = json.loads(line)
                except ValueError:
                    transition = None
                if not isinstance(transition, dict) or not set(transition) >= NEEDED:
                    raise UserError(f"{path}, line {number} is damaged")
                yield transition
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is damaged: not UTF-8 text") from error
    except OSError as error:
        raise UserError(f"{run} holds no run: cannot read {path.name}: {error.strerror}") from error


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
