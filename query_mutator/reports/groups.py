"""Groups of runs that differ by nothing but their seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.flags import option_of
from query_mutator.base.terminal import without_passwords
from query_mutator.reports.runs import Run

LONGEST_VALUE = 40
NOT_COMPARED = {
    "seed",
    "cache",
    "save_interval",
    "log_interval",
    "use_eval",
    "eval_interval",
    "eval_questions",
    "config",
    "resume",
    "run_dir",
    "use_report",
}
"""Settings that do not change what is learned: where things are kept, how often it is measured."""


@dataclass(frozen=True)
class Group:
    """Runs of one kind."""

    name: str
    runs: list[Run]

    @property
    def seeds(self) -> int:
        """Independent repetitions."""
        return len(self.by_seed())

    def by_seed(self) -> list[list[Run]]:
        """The runs of each seed, which are one repetition; a run whose seed is not known is one."""
        found: dict[str, list[Run]] = {}
        for run in self.runs:
            found.setdefault(str((run.settings or {}).get("seed", run.path)), []).append(run)
        return list(found.values())


def group_runs(runs: Sequence[Run], given: Sequence[str] = ()) -> list[Group]:
    """The runs in groups, in the order of their first run.

    Runs with settings are grouped by these, seeds aside; others stand alone, unless `given`, as
    `NAME=RUN,RUN`, puts them together.
    """
    named = _named(runs, given)
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        if run.name in named:
            kind = f"given {named[run.name]}"
        elif run.settings is not None:
            kind = json.dumps(_compared(run.settings), sort_keys=True)
        else:
            kind = f"alone {run.name}"
        kinds.setdefault(kind, []).append(run)
    members = list(kinds.values())
    names = [named.get(group[0].name) or _name(group, members) for group in members]
    unique = len(set(names)) == len(names)
    return [
        Group(name if unique else f"{name} ({group[0].name}…)", group)
        for name, group in zip(names, members, strict=True)
    ]


def _named(runs: Sequence[Run], given: Sequence[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for text in given:
        name, found, members = text.partition("=")
        if not found or not name or not members:
            raise UserError(f"--group must be NAME=RUN,RUN, not {text!r}")
        for member in members.split(","):
            matching = [r for r in runs if member in (r.name, str(r.path), r.path.name)]
            if len(matching) != 1:
                known = ", ".join(run.name for run in runs)
                problem = "several runs are" if matching else "no run is"
                raise UserError(f"--group {name}: {problem} called {member}; there are: {known}")
            one = matching[0].name
            if named.setdefault(one, name) != name:
                raise UserError(f"--group: {one} is in two groups, {named[one]} and {name}")
    return named


def _compared(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in NOT_COMPARED}


def _name(group: Sequence[Run], groups: Sequence[Sequence[Run]]) -> str:
    """What tells the group from the others: its run, or the settings that differ."""
    if len(group) == 1 or group[0].settings is None:
        return group[0].name
    kinds = [_compared(other[0].settings) for other in groups if other[0].settings is not None]
    own = _compared(group[0].settings)
    differing = [
        name
        for name in own
        if any(json.dumps(kind.get(name)) != json.dumps(own[name]) for kind in kinds)
    ]
    if not differing:
        return f"{group[0].name} and other seeds"
    return " ".join(
        f"{option_of(name).removeprefix('--')}={_in_words(own[name])}" for name in differing
    )


def _in_words(value: Any) -> str:
    """A setting as people write it, without passwords; a long one is cut."""
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    text = without_passwords(text)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
