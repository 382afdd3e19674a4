"""The directory of a rewriter: settings, adapter, checkpoints, figures."""

from __future__ import annotations

import time
from pathlib import Path

from query_mutator.runs.checkpoints import CheckpointStore
from query_mutator.runs.directory import CHECKPOINTS, RunDirectory

KEPT = 2


class RewriterDirectory(RunDirectory):
    """Written like that of a run."""

    flag = "--output"

    @property
    def checkpoints(self) -> CheckpointStore:
        return CheckpointStore(self.path / CHECKPOINTS, kept=KEPT)


def default_output() -> Path:
    """rewriters/ and the time."""
    return Path("rewriters") / time.strftime("%Y-%m-%d_%H-%M-%S")
