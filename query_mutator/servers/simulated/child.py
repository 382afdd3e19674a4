"""A simulated server in a process of its own, so that it takes no time from who measures it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests

from query_mutator.base.children import module_command, module_environment
from query_mutator.servers.simulated.api import STATS_PATH


@dataclass(frozen=True)
class SimulatedChild:
    """A running simulated server."""

    url: str
    process: subprocess.Popen[str]

    def stats(self) -> dict[str, Any]:
        """Its counters, without the logs of single requests."""
        counters: dict[str, Any] = requests.get(self.url + STATS_PATH, timeout=10).json()
        return counters


@contextlib.contextmanager
def start_simulated(*flags: str) -> Iterator[SimulatedChild]:
    """Runs a simulated server with `flags` on a free port until the block ends."""
    process = subprocess.Popen(
        module_command("query_mutator.servers.simulated", "--port", "0", "--until-eof", *flags),
        env=module_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the parent, which then ends its servers
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        if not words:
            raise RuntimeError(f"the simulated server did not start with {flags}")
        yield SimulatedChild(words[-1], process)
    finally:
        process.terminate()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
