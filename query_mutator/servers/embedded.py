"""The embedded model: SmolLM2 on llama.cpp, in a process of its own, on loopback.

`python -m query_mutator.servers.embedded` runs it alone; `start_embedded` runs it for as long as
its parent lives.

A rewriter, the same model with an adapter, is served beside it at an address of its own, from the
same file of weights. llama.cpp could choose the adapter for each request to one server, but it then
takes what it remembers of prompts for the weights of either, so that the target would answer
otherwise (4 of 16 answers stayed the same), and calls with and without it are in no common batch.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from query_mutator.base.children import module_command, module_environment
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import OneLineParser, exit_code, leave
from query_mutator.base.weights import gguf_path
from query_mutator.servers.rewriters import NONE, find_rewriter

MODEL_NAME = "smollm2:135m"
REWRITER_NAME = f"{MODEL_NAME}+rewriter"
START_TIMEOUT_S = 120.0
SPIN_COUNT = "1000"
PROMPT_CACHE_MIB = 512
"""Prompts of slots that were taken over are kept: the examples of an operator are read once."""
CONTENDER_SLOTS = 4
"""A contender's calls are short, and each of its slots costs memory."""
LAST_PORT = 65535
MAX_SLOTS = 16
"""More slots cost memory and give no more tokens a second on a CPU."""


@dataclass
class EmbeddedServer:
    """A running embedded server; `close` ends it, and so does the end of this process."""

    url: str
    process: subprocess.Popen[bytes]
    rewriter_url: str = ""
    """Where the rewriter is asked; "" where there is none."""
    contender_urls: list[str] = field(default_factory=list)
    """Where each of the adapters to compare is asked, in order."""

    @property
    def adapter_urls(self) -> list[str]:
        """Where the model is asked with an adapter: the rewriter first."""
        return [*([self.rewriter_url] if self.rewriter_url else []), *self.contender_urls]

    def close(self) -> None:
        """Ends the server and waits until it is gone."""
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def default_slots() -> int:
    """Calls at once that suit this machine: with 2 cores, 4 slots were faster than 8."""
    return min(2 * (os.cpu_count() or 1), MAX_SLOTS)


def start_embedded(
    *, slots: int, num_ctx: int, rewriter: Path | None = None, contenders: Sequence[Path] = ()
) -> EmbeddedServer:
    """Starts the embedded model on a free loopback port and waits until it answers.

    With an adapter, it is the rewriter too, at another port; so is each of those to compare.
    """
    gguf_path()
    flags = ["--slots", str(min(slots, MAX_SLOTS)), "--num-ctx", str(num_ctx)]
    # What is shipped is not used unasked: whoever starts the server has chosen.
    flags += ["--rewriter", str(rewriter) if rewriter else NONE]
    for contender in contenders:
        flags += ["--contender", str(contender)]
    process = subprocess.Popen(
        module_command("query_mutator.servers.embedded", "--child", "--port", "0", *flags),
        # The child watches this pipe, which closes when we end, even by SIGKILL, and ends too.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Threads that spin for long starve each other as soon as anything else runs on the cores,
        # and threads that never spin halve the speed of an idle machine: spin for a moment.
        env={"GOMP_SPINCOUNT": SPIN_COUNT, **module_environment()},
        # Ctrl-C in a terminal reaches the whole group; the trainer ends the server when it is done.
        start_new_session=True,
    )
    told = _first_line(process, START_TIMEOUT_S)
    server = EmbeddedServer(
        told.get("url", ""),
        process,
        told.get("rewriter_url", ""),
        told.get("contender_urls", []),
    )
    if not server.url:
        server.close()
        adapter = told.get("failed") or (str(rewriter) if rewriter else "")
        with_it = f" with the rewriter {adapter}" if adapter else ""
        flag = f" --rewriter {shlex.quote(adapter)}" if adapter else ""
        raise UserError(
            f"the embedded model did not start{with_it}; "
            f"`query-mutator serve-embedded{flag}` shows why"
        )
    return server


def _first_line(process: subprocess.Popen[bytes], timeout_s: float) -> dict[str, Any]:
    """The URLs the child prints once it listens, none if it ends or stays silent.

    One that fails tells with which adapter.
    """
    lines: list[bytes] = []
    assert process.stdout is not None
    reader = threading.Thread(
        target=lambda out: lines.append(out.readline()), args=[process.stdout]
    )
    reader.daemon = True
    reader.start()
    reader.join(timeout_s)
    try:
        found = json.loads(lines[0]) if lines else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _available_cores() -> int:
    with contextlib.suppress(AttributeError):  # not on every platform
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def serve(
    *,
    port: int,
    slots: int,
    num_ctx: int,
    threads: int,
    quiet: bool,
    adapter: Path | None = None,
    prompt_cache_mib: int = PROMPT_CACHE_MIB,
) -> Any:
    """llama.cpp's own HTTP server, listening; it lives as long as the object does.

    With an adapter, every call is answered with it.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf_path())
    params.model_alias = {REWRITER_NAME if adapter else MODEL_NAME}
    if adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(adapter), 1.0)]
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = slots
    params.n_ctx = slots * num_ctx
    params.kv_unified = False
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # A connection holds a thread while its call is under way; keep some for health and props.
    params.n_threads_http = 2 * slots + 4
    params.cache_ram_mib = prompt_cache_mib
    params.ui = False
    if quiet:
        params.verbosity = -1
    return xllamacpp.Server(params)


def _check_following(port: int) -> None:
    """Refuses a port that the rewriter cannot have: llama.cpp would not say what is wrong."""
    advice = "choose another --port, or leave the rewriter out by --rewriter none"
    if port > LAST_PORT:
        raise UserError(f"the rewriter is served at the port that follows {LAST_PORT}: {advice}")
    with socket.socket() as probe:
        if os.name == "posix":  # or a port stays taken for a minute after its server has ended
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UserError(
                f"port {port}, where the rewriter would be served, cannot be had "
                f"({error.strerror}): {advice}"
            ) from error


def run(argv: Sequence[str] | None = None, prog: str = "query-mutator serve-embedded") -> int:
    """Serves until it is stopped or, as a child, until its parent is gone."""
    parser = OneLineParser(
        prog=prog,
        description="Serves the embedded model (SmolLM2-135M) with an OpenAI-compatible API.",
    )
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one (default 8080)")
    parser.add_argument("--slots", type=int, default=8, help="calls served at once (default 8)")
    parser.add_argument(
        "--num-ctx", type=int, default=2048, help="context of a slot (default 2048)"
    )
    parser.add_argument(
        "--threads", type=int, default=_available_cores(), help="default: all cores"
    )
    parser.add_argument(
        "--rewriter",
        metavar="PATH",
        help="adapter of the rewriter, which is served at the port that follows: a GGUF, or a "
        "directory of train-mutator (default: the shipped one; none: no rewriter)",
    )
    parser.add_argument("--contender", action="append", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if not 0 <= args.port <= LAST_PORT or args.slots < 1 or args.num_ctx < 1 or args.threads < 1:
        raise UserError("--port must be 0 to 65535, and --slots, --num-ctx, --threads at least 1")
    rewriter = find_rewriter(args.rewriter)
    options = {"slots": args.slots, "num_ctx": args.num_ctx, "threads": args.threads}
    options["quiet"] = args.child
    following = args.port + 1 if args.port else 0
    if rewriter:
        _check_following(following)
    servers = []
    adapter = None
    try:
        servers.append(serve(port=args.port, **options))
        if rewriter:
            adapter = rewriter.path
            servers.append(serve(port=following, **options, adapter=adapter))
        contended = {**options, "slots": min(args.slots, CONTENDER_SLOTS), "prompt_cache_mib": 0}
        contenders = []
        for adapter in map(Path, args.contender):
            contenders.append(serve(port=0, **contended, adapter=adapter))
    except RuntimeError as error:
        if args.child:
            print(json.dumps({"failed": str(adapter or "")}), flush=True)
        of_it = " with its rewriter (is it an adapter of this model?)" if servers else ""
        raise UserError(f"the embedded server could not start{of_it}: {error}") from error
    urls = [server.listening_address for server in servers]
    if args.child:
        told: dict[str, Any] = dict(zip(("url", "rewriter_url"), urls, strict=False))
        told["contender_urls"] = [server.listening_address for server in contenders]
        print(json.dumps(told), flush=True)
        sys.stdin.buffer.read()
        os._exit(0)
    for name, url in zip((MODEL_NAME, REWRITER_NAME), urls, strict=False):
        print(f"{name} is served at {url} with {args.slots} slots; Ctrl-C stops it", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    # llama.cpp's threads do not end with the interpreter.
    os._exit(0)


if __name__ == "__main__":
    leave(exit_code(run))
