"""llama.cpp's server with a model and an adapter of the test's own, as a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def llama_server(model: Path, adapter: Path | None = None) -> Iterator[str]:
    """The address of a server with one slot, which ends with the block."""
    command = [sys.executable, "-m", "tests.llama_child", str(model)]
    process = subprocess.Popen(
        [*command, *([str(adapter)] if adapter else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "GOMP_SPINCOUNT": "1000"},
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()  # closes its standard input, which it waits for


def serve(model: str, adapter: str | None) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_parallel, params.n_ctx, params.n_gpu_layers = 1, 512, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.ui, params.verbosity = False, -1
    if adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(adapter, 1.0)]
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
