"""Runs written for tests: event files whose times are known, with the settings of a run of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

START = 1_700_000_000.0


def write_events(
    directory: Path, points: Sequence[tuple[str, int, float, float]], *, began_s: float = 0
) -> None:
    """An event file with points of a tag, a step, a value and seconds after START."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"events.out.tfevents.{began_s:.0f}").open("wb") as file:
        writer = RecordWriter(file)
        head = Event(wall_time=START + began_s, file_version="brain.Event:2")
        writer.write(head.SerializeToString())
        for tag, step, value, second in points:
            event = Event(wall_time=START + second, step=step)
            event.summary.value.append(Summary.Value(tag=tag, simple_value=value))
            writer.write(event.SerializeToString())


def write_run(
    path: Path,
    curves: Mapping[str, Sequence[float]],
    *,
    settings: dict[str, Any] | None = None,
    steps: int = 10,
    seconds: float = 60,
) -> Path:
    """A run with a point of each curve every so many steps and seconds; of ours with settings."""
    points = [
        (tag, steps * (index + 1), value, seconds * (index + 1))
        for tag, values in curves.items()
        for index, value in enumerate(values)
    ]
    write_events(path / "tensorboard" if settings is not None else path, points)
    if settings is not None:
        (path / "config.json").write_text(json.dumps({"settings": settings}))
    return path
