"""Measures ways to make many model calls at once, on a simulated server or on yours."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from command_line import OneLineParser, exit_code, leave
from errors import UserError


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(
        prog="benchmark_batching.py",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--server", help="URL of a server; none starts a simulated one")
    add("--mutator-model", help="model that rewrites")
    add("--target-model", help="model that answers")
    add(
        "--batch-size", type=int, nargs="+", default=[8], help="calls at once; several are compared"
    )
    add("--num-processes", type=int, default=16, help="environments")
    add(
        "--num-queries",
        type=int,
        default=os.environ.get("NUM_QUERIES", 256),
        help="rewrites, and as many answers, of each design (also: NUM_QUERIES)",
    )
    add("--designs", nargs="+", help="those to compare (all by default)")
    add("--slots", type=int, default=8, help="slots of the simulated server")
    add("--mean-latency", type=float, default=0.25, help="its seconds a call, in the mean")
    add("--sigma", type=float, default=0.5, help="spread of its lognormal latencies")
    add("--seed", type=int, default=0, help="seed of its latencies")
    add("--output", type=Path, help="folder for batching.json and batching.png")
    return parser


def benchmark(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    args = build_parser().parse_args(argv)
    for name in ("num_processes", "num_queries", "slots"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1")
    if min(args.batch_size) < 1 or args.num_queries < args.num_processes:
        raise UserError(
            "--batch-size must be at least 1, and --num-queries --num-processes or more"
        )

    from benchmarks.measure import measure
    from benchmarks.report import table, write_files
    from benchmarks.strategies import STRATEGIES, Workload
    from model_client.roles import Roles

    unknown = [name for name in args.designs or [] if name not in STRATEGIES]
    if unknown:
        raise UserError(f"no design '{unknown[0]}'; there are: {', '.join(STRATEGIES)}")
    results = []
    with _server(args) as (connection, slots):
        roles = Roles(connection.mutator_model, connection.target_model)
        for name in args.designs or STRATEGIES:
            for batch_size in args.batch_size if name != "sequential" else [1]:
                steps = args.num_queries // args.num_processes
                work = Workload(args.num_processes, steps, batch_size, roles)
                print(f"{name}, batch size {batch_size} …", file=sys.stderr)
                results.append(measure(name, STRATEGIES[name], work, connection, slots=slots))
    print(table(results))
    if args.server:
        best = max(results, key=lambda result: result.calls_per_second)
        print(
            f"\nfastest: {best.strategy} with --batch-size {best.batch_size}; "
            f"for Ollama set OLLAMA_NUM_PARALLEL={best.batch_size}"
        )
    if args.output:
        setting = {key: value for key, value in vars(args).items() if key != "output"}
        write_files(results, setting, args.output)
        print(f"\nwritten: {args.output / 'batching.json'}, {args.output / 'batching.png'}")
    return 0


@contextlib.contextmanager
def _server(args: argparse.Namespace) -> Iterator[tuple[Any, int | None]]:
    """A connection to the user's server, or to a simulated one whose slots are known."""
    from model_client.client import ModelClient
    from model_client.connect import connect, warm_up

    with contextlib.ExitStack() as stack:
        url, slots = args.server, None
        models = {"mutator_model": args.mutator_model, "target_model": args.target_model}
        if not url:
            from servers.simulated import SimulatedServer

            server = SimulatedServer(
                slots=args.slots,
                mean_latency_s=args.mean_latency,
                sigma=args.sigma,
                seed=args.seed,
            )
            url, slots = stack.enter_context(server).url, args.slots
            models = {"mutator_model": server.models[0], "target_model": server.models[1]}
        connection = connect(url, **models)
        stack.callback(connection.close)
        client = ModelClient(connection.http, connection.dialect)
        warm_up(client, connection, num_ctx=2048, timeout_s=600)
        yield connection, slots


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return exit_code(lambda: benchmark(argv))


if __name__ == "__main__":
    leave(main())
