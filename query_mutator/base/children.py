"""Child processes that run a module of this product, installed or not, in any directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours, whatever lies in the current directory."""
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment() -> dict[str, str]:
    """The environment in which a child finds the modules that this process runs from."""
    # At the end: a folder of the user's own must not come before what they have installed.
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), str(SOURCES)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
