"""Servers that are started here can be reached from this machine only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from query_mutator.servers.embedded import start_embedded
from query_mutator.servers.simulated import SimulatedServer

LISTENING = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


def listening(process: int) -> set[str]:
    """The addresses that a process listens on, as the kernel writes them."""
    sockets = set()
    for handle in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            if (target := os.readlink(handle)).startswith("socket:["):
                sockets.add(target[len("socket:[") : -1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in sockets:
                found.add(fields[1].partition(":")[0])
    return found


def test_the_simulated_server_listens_on_loopback_only() -> None:
    with SimulatedServer():
        assert listening(os.getpid()) <= LOOPBACK
        assert listening(os.getpid())


@pytest.mark.slow
def test_the_embedded_server_listens_on_loopback_only() -> None:
    server = start_embedded(slots=1, num_ctx=256)
    try:
        addresses = listening(server.process.pid)
    finally:
        server.close()
    assert addresses
    assert addresses <= LOOPBACK
