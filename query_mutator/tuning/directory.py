"""The directory of a rewriter: settings, adapter, checkpoints, figures."""

from __future__ import annotations

from pathlib import Path

from query_mutator.runs.checkpoints import CheckpointStore
from query_mutator.runs.directory import CHECKPOINTS, RunDirectory, timed_directory

KEPT = 2


class RewriterDirectory(RunDirectory):
    """Written like that of a run."""

    flag = "--output"

    @property
    def checkpoints(self) -> CheckpointStore:
        return CheckpointStore(self.path / CHECKPOINTS, kept=KEPT)


def default_output() -> Path:
    """rewriters/, the time and the process."""
    return timed_directory(Path("rewriters"))
