"""The runs of a sweep: every combination of some flags, with every seed."""

from __future__ import annotations

import difflib
import itertools
import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.base.flags import option_of
from query_mutator.base.terminal import command_line
from query_mutator.runs.settings import Settings, build_parser, parse_settings

OWN_FLAGS = ("--seed", "--run-dir", "--resume")
POINTS = 5
"""Points of the held-out curve in each run, where --eval-interval is not given."""


@dataclass(frozen=True)
class Dimension:
    """A flag and the values that it takes, as they were written."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SweptRun:
    """One run of a sweep."""

    name: str
    combination: tuple[str, ...]
    seed: int
    flags: tuple[str, ...]
    """Those of `train_query_mutator.py`, but for its directory and its cache."""
    env_steps: int


def parse_grid(texts: Sequence[str]) -> list[Dimension]:
    """The dimensions that `--grid name=a,b,c` names."""
    known = {option_of(item.name).removeprefix("--"): item for item in fields(Settings)}
    grid: list[Dimension] = []
    for text in texts:
        name, found, listed = text.partition("=")
        name = name.strip().removeprefix("--").replace("_", "-")
        values = tuple(value.strip() for value in listed.split(",") if value.strip())
        if not found or not values:
            raise UserError(f"--grid must be NAME=VALUE,VALUE, not {text!r}")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"; near: {', '.join(near)}" if near else ""
            raise UserError(f"--grid: `{command_line('train')}` has no flag --{name}{hint}")
        if f"--{name}" in OWN_FLAGS:
            raise UserError(f"--grid cannot be over --{name}: the sweep sets it (--seeds N)")
        if name == "cache":
            raise UserError("--grid cannot be over --cache: each run has its own, or --share-cache")
        if isinstance(known[name].default, bool):
            raise UserError(f"--grid needs a flag with values; --{name} has none")
        if len(set(values)) < len(values) or name in {dimension.name for dimension in grid}:
            raise UserError(f"--grid {text}: given twice")
        grid.append(Dimension(name, values))
    if not grid:
        raise UserError("sweep needs --grid NAME=VALUE,VALUE: the flags to try")
    return grid


def label(grid: Sequence[Dimension], combination: Sequence[str]) -> str:
    """The combination as people read it."""
    return " ".join(f"{d.name}={value}" for d, value in zip(grid, combination, strict=True))


def combinations(grid: Sequence[Dimension]) -> list[tuple[str, ...]]:
    """All combinations, the last dimension running fastest."""
    return list(itertools.product(*(dimension.values for dimension in grid)))


def plan(grid: Sequence[Dimension], seeds: int, flags: Sequence[str]) -> list[SweptRun]:
    """Every run of a sweep, each checked as the trainer would; seed after seed, so that what is
    there after an interruption covers the whole grid.
    """
    for word in flags:
        if (name := word.partition("=")[0]) in OWN_FLAGS:
            raise UserError(f"{name} cannot be given: the sweep sets it")
        if name in {f"--{dimension.name}" for dimension in grid}:
            raise UserError(f"{name} is given twice: in --grid and after --")
    settings = {c: _settings(grid, c, flags) for c in combinations(grid)}
    steps = _steps_between_points(list(settings.values()))
    runs = []
    for seed in range(1, seeds + 1):
        for combination, of_combination in settings.items():
            own = [*flags, *_flags_of(grid, combination), "--seed", str(seed)]
            given = {word.partition("=")[0] for word in own}
            if not given & {"--use-eval", "--no-eval"}:
                own.append("--no-eval")
            if "--eval-interval" not in given:
                interval = max(1, round(steps / _rollout(of_combination)))
                own += ["--eval-interval", str(interval)]
            name = re.sub(r"[^\w.=+-]+", "-", label(grid, combination).replace(" ", "_"))
            name = f"{name}_seed={seed}"
            total = of_combination.num_env_steps
            runs.append(SweptRun(name, combination, seed, tuple(own), total))
    if len({run.name for run in runs}) < len(runs):
        raise UserError("--grid: two values make the same directory name")
    return runs


def _settings(
    grid: Sequence[Dimension], combination: tuple[str, ...], flags: Sequence[str]
) -> Settings:
    """What the trainer makes of the flags; refused as it would refuse them."""
    own = [*flags, *_flags_of(grid, combination)]
    try:
        return parse_settings(build_parser("train_query_mutator.py", ""), own)
    except UserError as error:
        raise UserError(f"{label(grid, combination)}: {error}") from error


def _flags_of(grid: Sequence[Dimension], combination: tuple[str, ...]) -> list[str]:
    pairs = zip(grid, combination, strict=True)
    return [word for dimension, value in pairs for word in (f"--{dimension.name}", value)]


def _steps_between_points(settings: Sequence[Settings]) -> float:
    """Steps between two points of the held-out curve, such that the shortest run has about
    `POINTS`.

    Rounded to what all rollouts divide, where the shortest run has two such points: all runs then
    measure at the same steps, and pay the same for it.
    """
    shortest = min(each.num_env_steps for each in settings)
    wanted, common = shortest / POINTS, math.lcm(*(_rollout(each) for each in settings))
    return common * max(1, round(wanted / common)) if 2 * common <= shortest else wanted


def _rollout(settings: Settings) -> int:
    return settings.num_processes * settings.num_steps


def command_of(run: SweptRun, path: Path) -> str:
    """The command that makes the run by itself, for people to copy."""
    return f"{command_line('train')} {shlex.join([*run.flags, '--run-dir', str(path)])}"
