"""Stream samples as JSON lines that are a data set too: id, prompt, completion, and the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from batching.streaming.samples import MOST_VALUES, StreamSample, check_readable
from query_mutator.base.closing import Closing
from query_mutator.base.errors import UserError
from query_mutator.base.files import write_atomically
from query_mutator.base.untrusted import parse_json, read_lines

WHAT = "the samples"
NAMES = {"id": "sample_id", "prompt": "prompt", "completion": "completion"}
"""What a data set calls them, and under what they are in a sample's `meta`."""


def sample_line(sample: StreamSample) -> bytes:
    """A sample on a line: its texts as a data set has them, then its tokens and its outcome."""
    row = sample.to_dict()
    meta = row.pop("meta")
    texts = {name: meta.pop(own) for name, own in NAMES.items() if own in meta}
    line = json.dumps({**texts, **row, "meta": meta}).encode() + b"\n"
    return check_readable(line, sample)


def save_samples(path: str | Path, samples: Iterable[StreamSample]) -> int:
    """Writes samples whole or not at all; returns how many there are."""
    written = 0

    def write(file: BinaryIO) -> None:
        nonlocal written
        for sample in samples:
            file.write(sample_line(sample))
            written += 1

    write_atomically(Path(path), write)
    return written


class SampleWriter(Closing):
    """Writes samples as they come: each is in the file when `write` has returned.

    The file begins with the first sample; where none comes, there is none.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.written = 0
        self._file: BinaryIO | None = None

    def write(self, sample: StreamSample) -> None:
        """Adds one sample."""
        if self._file is None:
            self._file = self.path.open("wb")
        self._file.write(sample_line(sample))
        self._file.flush()
        self.written += 1

    def close(self) -> None:
        """Ends the file, if there is one."""
        if self._file is not None:
            self._file.close()


def read_samples(path: str | Path) -> Iterator[StreamSample]:
    """What `save_samples` or a `SampleWriter` wrote; `UserError` names a line that is damaged."""
    for number, line in enumerate(read_lines(path, WHAT), 1):
        try:
            yield _sample(parse_json(line, most_values=MOST_VALUES))
        except (ValueError, TypeError) as error:
            raise UserError(
                f"{path}, line {number} is no sample: {error}; delete the line to read the others"
            ) from error


def _sample(row: Any) -> StreamSample:
    if not isinstance(row, dict) or not isinstance(row.get("meta"), dict):
        raise ValueError("not an object with meta")
    texts = {own: row.pop(name) for name, own in NAMES.items() if name in row}
    return StreamSample.from_dict({**row, "meta": {**texts, **row["meta"]}})
