"""TensorBoard event files that can be cut back to a checkpoint.

Points are written by the thread that makes them, so that what a checkpoint knows is in the file;
TensorBoard's own writer leaves that to another thread.
"""

from __future__ import annotations

import io
import logging
import os
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from query_mutator.base.files import append, cut, size_of

logger = logging.getLogger(__name__)

PREFIX = "events.out.tfevents."


class CurveWriter:
    """Adds points to the curves of a run, in an event file of its own.

    Where they cannot be written, that is said once and the points are dropped.
    """

    def __init__(self, directory: Path, sizes: dict[str, int], *, first_step: int) -> None:
        self._directory = directory
        self._sizes = dict(sizes)
        # TensorBoard reads files by the order of their names and does not turn back.
        newest = max((_started(name) for name in event_files(directory)), default=0)
        self._name = f"{PREFIX}{max(int(time.time()), newest + 1):010d}.{os.getpid()}"
        self._told = False
        self._waiting = io.BytesIO()
        self._add(file_version="brain.Event:2")
        # Has a TensorBoard that is looking on forget what was cut.
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._add(session_log=start, step=first_step)

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """One more point, on the disk after `flush`."""
        point = summary_pb2.Summary.Value(tag=tag, simple_value=float(value))
        self._add(summary=summary_pb2.Summary(value=[point]), step=int(step))

    def flush(self) -> dict[str, int]:
        """Writes the points that wait; returns the size of each event file of the run."""
        data, self._waiting = self._waiting.getvalue(), io.BytesIO()
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            at = self._sizes.get(self._name, 0)
            self._sizes[self._name] = append(self._directory / self._name, data, at=at)
        except OSError as error:
            if not self._told:
                self._told = True
                logger.warning(
                    "cannot write the curves to %s (%s); training goes on without them",
                    self._directory,
                    error.strerror,
                )
        return dict(self._sizes)

    def _add(self, **fields: Any) -> None:
        event = event_pb2.Event(wall_time=time.time(), **fields)
        RecordWriter(self._waiting).write(event.SerializeToString())


def event_files(directory: Path) -> list[str]:
    """The names of the event files of a run."""
    return sorted(path.name for path in directory.glob(f"{PREFIX}*"))


def cut_curves(directory: Path, sizes: dict[str, int]) -> None:
    """Drops the points that were drawn after the checkpoint with these `sizes`."""
    for name in event_files(directory):
        if sizes.get(name):
            cut(directory / name, sizes[name])
        else:
            (directory / name).unlink()
    lost = [name for name, size in sizes.items() if size_of(directory / name) < size]
    if lost:
        logger.warning("%s has lost points that were drawn before", directory / lost[0])


def _started(name: str) -> int:
    digits = name[len(PREFIX) :].split(".")[0]
    return int(digits) if digits.isdecimal() and digits.isascii() else 0
