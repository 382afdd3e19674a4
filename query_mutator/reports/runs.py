"""Finds and loads runs: ours, and any other program's TensorBoard directories."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.reports.events import Curve, event_files, read_curves
from query_mutator.runs.directory import CONFIG, SUMMARY, TENSORBOARD, RunDirectory

SHOWN = 5


@dataclass(frozen=True)
class Run:
    """A run that was read from its directory."""

    name: str
    path: Path
    curves: dict[str, Curve]
    config: dict[str, Any] | None = None
    """What config.json holds; None for other programs' runs, as for `summary`."""
    summary: dict[str, Any] | None = None

    @property
    def settings(self) -> dict[str, Any] | None:
        """The flags that the run was made with, where they are known."""
        settings = (self.config or {}).get("settings")
        return settings if isinstance(settings, dict) else None


def load_run(path: str | Path) -> Run:
    """The run in a directory: one of ours, or one with event files of any program."""
    path = Path(path).expanduser()
    if path.name == TENSORBOARD and _our_config(path.parent) is not None:
        path = path.parent
    if not path.is_dir():
        raise UserError(f"{path} is no directory: name the directory of a run")
    config = _our_config(path)
    events = path if config is None else path / TENSORBOARD
    if not event_files(events):
        raise UserError(_nothing_there(path))
    summary = None
    if config is not None and (path / SUMMARY).is_file():
        summary = RunDirectory(path).read_json(SUMMARY)
    return Run(path.resolve().name, path, read_curves(events), config, summary)


def load_runs(paths: Sequence[str | Path]) -> list[Run]:
    """The runs in several directories, each under a name of its own: as much of its path as that
    takes.
    """
    runs = [load_run(path) for path in paths]
    parts = [run.path.resolve().parts for run in runs]
    for index, run in enumerate(runs):
        if parts.index(parts[index]) < index:
            raise UserError(f"{run.path} is given twice")
    named = []
    for run, own in zip(runs, parts, strict=True):
        others = [other for other in parts if other != own]
        length = 1
        while length < len(own) and any(other[-length:] == own[-length:] for other in others):
            length += 1
        named.append(replace(run, name="/".join(own[-length:])))
    return named


def find_runs(logdir: str | Path) -> list[Path]:
    """The directories of all runs in a directory, however deep, in the order of their names."""
    logdir = Path(logdir).expanduser()
    if not logdir.is_dir():
        raise UserError(f"{logdir} is no directory")
    found = set()
    for folder, _, files in os.walk(logdir, followlinks=False):
        if any("tfevents" in name for name in files):
            path = Path(folder)
            ours = path.name == TENSORBOARD and _our_config(path.parent) is not None
            found.add(path.parent if ours else path)
    return sorted(found)


def _nothing_there(path: Path) -> str:
    inside = [str(run) for run in find_runs(path)]
    if not inside and (path / CONFIG).is_file():
        return f"{path} has no curves yet: a run draws its first points after its first update"
    if not inside:
        return f"{path} holds no run: no event file of TensorBoard in it"
    if inside == [str(path / TENSORBOARD)] and (path / CONFIG).is_file():
        return f"{path / CONFIG} is not that of a run of ours, or damaged\nIts curves: {inside[0]}"
    more = " …" if len(inside) > SHOWN else ""
    return (
        f"{path} is no run, but holds some: name them, or use --logdir\n"
        f"{' '.join(inside[:SHOWN])}{more}"
    )


def _our_config(path: Path) -> dict[str, Any] | None:
    """What config.json holds, where it is of a run of ours: many programs write such a file."""
    if not (path / TENSORBOARD).is_dir() or not (path / CONFIG).is_file():
        return None
    try:
        config = RunDirectory(path).read_json(CONFIG)
    except UserError:
        return None
    return config if isinstance(config.get("settings"), dict) else None


def named_runs(runs: Sequence[str | Path], logdir: str | Path | None) -> list[Path]:
    """The runs that a command line names: one by one, and all of a directory."""
    paths = [Path(run).expanduser() for run in runs]
    if logdir is not None:
        given = {path.resolve() for path in paths}
        found = find_runs(logdir)
        if not found:
            raise UserError(f"{logdir} holds no run: no event file of TensorBoard in it")
        paths += [path for path in found if path.resolve() not in given]
    if not paths:
        raise UserError("name the directories of runs, or --logdir with runs in it")
    return paths


def check_tags(tags: Sequence[str], runs: Sequence[Run]) -> None:
    """Refuses a tag that none of the runs has, with those that are spelt much like it."""
    known = sorted({tag for run in runs for tag in run.curves})
    for tag in tags:
        if tag in known:
            continue
        where = runs[0].name if len(runs) == 1 else "any of these runs"
        lower = {other.lower(): other for other in known}
        near = [lower[name] for name in difflib.get_close_matches(tag.lower(), lower, n=3)]
        near += [other for other in known if tag.lower() in other.lower() and other not in near]
        hint = f"near: {', '.join(near[:SHOWN])}" if near else "--list-tags of extract shows all"
        raise UserError(f"there is no metric {tag!r} in {where}; {hint}")
