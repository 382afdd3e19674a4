"""`python -m query_mutator.servers.simulated`: the simulated Ollama by itself."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from query_mutator.servers.simulated.answers import answer_from_questions, default_answer
from query_mutator.servers.simulated.faults import Fault
from query_mutator.servers.simulated.server import DEFAULT_MODELS, DIALECTS, SimulatedServer


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m query_mutator.servers.simulated",
        description="Run a simulated Ollama on loopback until Ctrl-C.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--port", type=int, default=11434, help="port to listen on; 0 takes a free one")
    add("--slots", type=int, default=8, help="calls served at a time")
    add("--slots-per-model", action="store_true", help="give every loaded model slots of its own")
    add(
        "--mean-latency", type=float, default=0.0, help="mean seconds for which a call holds a slot"
    )
    add("--sigma", type=float, default=0.0, help="spread of lognormal latencies; 0: constant")
    add("--latencies", metavar="FILE", help="recorded seconds, played in order, over and over")
    add("--seconds-per-token", type=float, default=0.0, help="latency added by each output token")
    add("--models", default=",".join(DEFAULT_MODELS), help="models on disk, with commas between")
    add("--max-loaded", type=int, default=3, help="models that fit in memory together")
    add("--load-time", type=float, default=0.0, help="seconds to load a model")
    add("--warm-time", type=float, default=0.0, help="seconds before any call queues for a slot")
    add("--max-queue", type=int, default=512, help="calls that may wait for a load")
    add("--questions", metavar="FILE", help="JSONL with question and reference, for the answers")
    add("--dialects", default=",".join(DIALECTS), help="APIs served, with commas between")
    add("--props", action="store_true", help="serve GET /props, as llama-server does")
    add(
        "--fault", action="append", default=[], metavar="KIND[:PROBABILITY]", help="may be repeated"
    )
    add("--seed", type=int, default=0, help="seed of the latencies")
    add("--until-eof", action="store_true", help="end with standard input: with who started it")
    return parser


def parse_fault(text: str, seed: int) -> Fault:
    """Return the fault that "busy" or "busy:0.1" stands for."""
    kind, _, probability = text.partition(":")
    return Fault(kind, probability=float(probability or 1.0), seed=seed)


def read_latencies(file: str) -> list[float]:
    """Return the numbers in a file; raises ValueError where they are no latencies."""
    latencies = [float(text) for text in Path(file).read_text(encoding="utf-8").split()]
    if not latencies or not all(0 <= latency < float("inf") for latency in latencies):
        raise ValueError(f"{file} must hold seconds, with spaces or lines between")
    return latencies


def _until_eof(stopped: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 1):  # a buffered read would hold a lock at the exit
        pass
    stopped.set()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a server until Ctrl-C or SIGTERM and return the exit status."""
    options = build_parser().parse_args(arguments)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        answer = answer_from_questions(options.questions) if options.questions else default_answer
        server = SimulatedServer(
            port=options.port,
            slots=options.slots,
            slots_per_model=options.slots_per_model,
            mean_latency_s=options.mean_latency,
            sigma=options.sigma,
            recorded_latencies_s=read_latencies(options.latencies) if options.latencies else None,
            seconds_per_token=options.seconds_per_token,
            models=tuple(options.models.split(",")),
            max_loaded=options.max_loaded,
            load_time_s=options.load_time,
            warm_time_s=options.warm_time,
            max_queue=options.max_queue,
            answer=answer,
            faults=[parse_fault(text, options.seed) for text in options.fault],
            dialects=tuple(options.dialects.split(",")),
            props=options.props,
            seed=options.seed,
        ).start()
    except (OSError, ValueError, OverflowError) as error:
        print(f"cannot start the simulated server: {error}", file=sys.stderr)
        return 2
    print(f"simulated Ollama on {server.url}", flush=True)
    if options.until_eof:
        threading.Thread(target=_until_eof, args=(stopped,), daemon=True).start()
    stopped.wait()
    server.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
