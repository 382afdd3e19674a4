"""Reads TensorBoard's event files: every scalar that any program wrote, none sampled away."""

from __future__ import annotations

import logging
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from query_mutator.base.errors import refused

logger = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Points = tuple[list[int], list[float], list[float]]
"""Steps, values and times, as they come."""

HEADER = struct.Struct("<QI")
HEADER_BYTES, FOOTER_BYTES = 12, 4
FLOAT, DOUBLE = 1, 2
"""TensorFlow's numbers for the two types that nearly all scalars have."""
CRC_POLYNOMIAL = 0x82F63B78
CRC_MASK = 0xA282EAD8


@dataclass(frozen=True)
class Curve:
    """The points of one tag, ordered by step."""

    steps: NDArray[np.int64]
    values: Floats
    times: Floats
    """Seconds since 1970."""
    minutes: Floats
    """Minutes that the run had been under way: pauses between its sessions do not count."""

    def __len__(self) -> int:
        return len(self.steps)


@dataclass
class _Session:
    """What a writer wrote from its start, or its restart, on."""

    began: float
    restart_step: int | None = None
    """Where a restart said that it begins again: what others wrote from there on is void."""
    points: dict[str, Points] = field(default_factory=lambda: defaultdict(lambda: ([], [], [])))


def event_files(directory: Path) -> list[Path]:
    """The event files right in a directory."""
    with refused(f"cannot read {directory}"):
        return sorted(p for p in directory.iterdir() if "tfevents" in p.name and p.is_file())


def read_curves(directory: Path) -> dict[str, Curve]:
    """Every scalar curve in a directory, by tag; several event files are one run.

    What a restarted run wrote again replaces what was there: from the step of TensorBoard's
    restart mark on, or where a later file takes a tag up at a step that it had reached before.
    """
    sessions = [session for file in event_files(directory) for session in _sessions(file)]
    sessions.sort(key=lambda session: session.began)  # not by name: the second is too coarse
    standing: dict[str, list[tuple[int, NDArray[Any]]]] = {}
    for number, session in enumerate(sessions):
        if session.restart_step is not None:
            for tag in standing:
                _drop(standing[tag], session.restart_step, session.began)
        for tag, points in session.points.items():
            earlier = standing.setdefault(tag, [])
            _drop(earlier, points[0][0], session.began)
            earlier.append((number, np.array(points, dtype=np.float64)))
            # A float64 holds whole steps up to 2^53 exactly.
    clock = _Clock(sessions, standing)
    curves = {}
    for tag, parts in standing.items():
        steps, values, times = np.concatenate([points for _, points in parts], axis=1)
        if len(steps):
            order = np.argsort(steps, kind="stable")
            at = times[order]
            curves[tag] = Curve(steps[order].astype(np.int64), values[order], at, clock.minutes(at))
    return curves


def _drop(parts: list[tuple[int, NDArray[Any]]], step: int, began: float) -> None:
    """Takes out what was written before `began` for `step` and later ones.

    What was written after it is from another writer at work at the same time, and stays.
    """
    for index, (number, points) in enumerate(parts):
        void = (points[0] >= step) & (points[2] <= began)
        if void.any():
            parts[index] = (number, points[:, ~void])


class _Clock:
    """Tells how long a run had been under way at a moment.

    A session lasts from its start to its last point that stands; sessions at the same time count
    once.
    """

    def __init__(
        self, sessions: Sequence[_Session], standing: dict[str, list[tuple[int, NDArray[Any]]]]
    ) -> None:
        ends: dict[int, float] = {}
        for parts in standing.values():
            for number, points in parts:
                if points.shape[1]:
                    ends[number] = max(ends.get(number, -np.inf), float(points[2].max()))
        spans: list[list[float]] = []
        for begin, end in sorted((sessions[number].began, end) for number, end in ends.items()):
            if spans and begin <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([begin, max(begin, end)])
        self._begins = np.array([begin for begin, _ in spans])
        self._lengths = np.array([end - begin for begin, end in spans])
        self._before = np.concatenate([[0.0], np.cumsum(self._lengths)[:-1]]) if spans else None

    def minutes(self, times: Floats) -> Floats:
        if self._before is None:
            return np.zeros_like(times)
        span = np.maximum(np.searchsorted(self._begins, times, side="right") - 1, 0)
        within = np.clip(times - self._begins[span], 0, self._lengths[span])
        return (self._before[span] + within) / 60


def _sessions(file: Path) -> list[_Session]:
    """The sessions of one file, of which all but odd files hold one."""
    from tensorboard.compat.proto import event_pb2

    sessions: list[_Session] = []
    scalar_tags: set[str] = set()
    odd_tags: set[str] = set()
    for record in _records(file):
        try:
            event = event_pb2.Event.FromString(record)
        except Exception:  # protobuf's own kinds differ between its implementations
            logger.warning("%s is damaged: what follows its damage is left out", file)
            break
        if not sessions:
            sessions.append(_Session(event.wall_time))
        if event.session_log.status == event_pb2.SessionLog.START:
            if sessions[-1].points:
                sessions.append(_Session(event.wall_time))
            sessions[-1].restart_step = event.step
        for value in event.summary.value:
            if (number := _number(value, scalar_tags, odd_tags)) is not None:
                steps, values, times = sessions[-1].points[value.tag]
                steps.append(event.step)
                values.append(number)
                times.append(event.wall_time)
    for tag in sorted(odd_tags):
        logger.warning("%s: %s is not always one number: such points are left out", file, tag)
    return sessions


def _number(value: Any, scalar_tags: set[str], odd_tags: set[str]) -> float | None:
    """The number in a part of a summary; None for what is no scalar.

    Some writers say that a tensor is one only with the first of a tag.
    """
    holds = value.WhichOneof("value")
    if holds != "tensor":
        return value.simple_value if holds == "simple_value" else None
    if value.metadata.plugin_data.plugin_name == "scalars":
        scalar_tags.add(value.tag)
    if value.tag not in scalar_tags:
        return None
    try:
        return _tensor_number(value.tensor)
    except Exception:  # an empty tensor, several numbers, no numbers: each its own kind
        odd_tags.add(value.tag)
        return None


def _tensor_number(tensor: Any) -> float:
    if tensor.dtype == FLOAT:
        if tensor.tensor_content:
            return float(struct.unpack("<f", tensor.tensor_content)[0])
        (number,) = tensor.float_val
        return float(number)
    if tensor.dtype == DOUBLE and tensor.double_val:
        (number,) = tensor.double_val
        return float(number)
    from tensorboard.util.tensor_util import make_ndarray

    return float(make_ndarray(tensor).item())


def _records(file: Path) -> Iterator[bytes]:
    """The records of a file in TensorFlow's framing.

    A record that ends too early is one that a writer has not finished, and ends the file quietly.
    """
    with refused(f"cannot read {file}"):
        content = file.read_bytes()
    position = 0
    while position + HEADER_BYTES <= len(content):
        length, check = HEADER.unpack_from(content, position)
        if check != _length_check(length):
            logger.warning("%s is damaged: what follows its damage is left out", file)
            return
        begin = position + HEADER_BYTES
        position = begin + length + FOOTER_BYTES
        if position > len(content):
            return
        yield content[begin : begin + length]


@lru_cache(maxsize=4096)
def _length_check(length: int) -> int:
    """The masked CRC-32C that stands after a record's length; few lengths come again and again."""
    crc = 0xFFFFFFFF
    for byte in length.to_bytes(8, "little"):
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (CRC_POLYNOMIAL if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + CRC_MASK) & 0xFFFFFFFF
