"""Reads the transition log of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.untrusted import DEEPEST, parse_json, read_lines
from query_mutator.environment.transition import Transition
from query_mutator.runs.directory import TRANSITIONS


def read_transitions(run: str | Path) -> Iterator[Transition]:
    """The transitions of a run, in order; a last line that is not yet whole is none of them."""
    return (transition for transition, _ in read_log(run))


def read_log(run: str | Path) -> Iterator[tuple[Transition, dict[str, Any]]]:
    """The transitions of a run, each with all that its line holds."""
    path = Path(run) / TRANSITIONS
    for number, line in enumerate(read_lines(path, "the log of a run,"), 1):
        if not line.endswith(b"\n"):  # being written, or cut off with the process that wrote it
            return
        try:
            values = parse_json(line, deepest=DEEPEST)
            transition = Transition.from_json(values)
        except ValueError as error:
            raise UserError(f"{path}, line {number} is damaged") from error
        yield transition, values


def returns_by_update(transitions: Sequence[Transition]) -> tuple[list[int], list[list[float]]]:
    """The environment steps at the end of each update, and the returns of its episodes."""
    returns: dict[int, list[float]] = defaultdict(list)
    steps: dict[int, int] = defaultdict(int)
    for transition in transitions:
        steps[transition.update] += 1
        if transition.episode_return is not None:
            returns[transition.update].append(transition.episode_return)
    ends, total = [], 0
    for update in sorted(steps):
        total += steps[update]
        ends.append(total)
    return ends, [returns[update] for update in sorted(steps)]
