"""Measures ways to make many model calls at once, on simulated servers or on yours."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.flags import AUTO
from query_mutator.base.terminal import OneLineParser


def batch_size(text: str) -> int | None:
    """A number of calls, or None for auto."""
    return None if text == AUTO else int(text)


batch_size.__name__ = "batch size"  # what argparse calls it in its messages


def build_parser(prog: str) -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(
        prog=prog,
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--server", action="append", help="URL of a server (repeatable); none simulates one")
    add("--mutator-model", help="model that rewrites")
    add("--target-model", help="model that answers")
    add(
        "--batch-size",
        type=batch_size,
        nargs="+",
        default=[8],
        metavar="N",
        help="calls at once on a server, or auto; several are compared",
    )
    add("--num-processes", type=int, default=16, help="environments")
    add(
        "--num-queries",
        type=int,
        default=os.environ.get("NUM_QUERIES", 256),
        help="rewrites, and as many answers, of each design (also: NUM_QUERIES)",
    )
    add("--designs", nargs="*", help="those to compare (all by default)")
    add("--peers", action="store_true", help="add what one would write with other libraries")
    add("--training", type=int, default=0, metavar="N", help="add a training run of N updates")
    add("--overhead", action="store_true", help="add the collector without latency, and a loop")
    add(
        "--after-calls",
        type=int,
        default=0,
        metavar="N",
        help="add a row for what came after the first N calls, when auto has found its limit",
    )
    add("--slots", type=int, default=8, help="slots of a simulated server")
    add("--num-servers", type=int, default=1, help="simulated servers")
    add("--mean-latency", type=float, default=0.25, help="their seconds a call, in the mean")
    add("--sigma", type=float, default=0.5, help="spread of their lognormal latencies")
    add("--max-loaded", type=int, default=3, help="models that fit into their memory together")
    add("--load-time", type=float, default=0.0, help="their seconds to load a model")
    add("--slots-per-model", action="store_true", help="give each of their models slots of its own")
    add("--dialect", choices=["ollama", "openai"], default="ollama", help="what they speak")
    add("--seed", type=int, default=0, help="seed of their latencies")
    add("--output", type=Path, help="folder for batching.json and batching.png")
    return parser


def run(argv: Sequence[str] | None = None, prog: str = "benchmark_batching.py") -> int:
    """What the command does; errors are raised."""
    args = build_parser(prog).parse_args(argv)
    _check(args)
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)

    from query_mutator.bench.report import recommendation, table, write_files

    results = []
    with _arena(args) as arena:
        for name, batch, measured in _plan(args, arena):
            print(f"{name}, batch size {batch or AUTO} …", file=sys.stderr)
            results += measured()
    print(table(results))
    if args.server and (line := recommendation(results)):
        print(f"\n{line}")
    if args.output:
        setting = {key: value for key, value in vars(args).items() if key != "output"}
        write_files(results, setting, args.output)
        print(f"\nwritten: {args.output / 'batching.json'}, {args.output / 'batching.png'}")
    return 0


def _check(args: argparse.Namespace) -> None:
    for name in ("num_processes", "num_queries", "slots", "num_servers", "max_loaded"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1")
    if min(args.mean_latency, args.sigma, args.load_time, args.training) < 0:
        raise UserError("times, --sigma and --training cannot be negative")
    if any(size is not None and size < 1 for size in args.batch_size):
        raise UserError("--batch-size must be at least 1, or auto")
    if args.num_queries < args.num_processes:
        raise UserError("--num-queries must be --num-processes or more: a step of each")
    last = int(0.9 * 2 * (args.num_queries // args.num_processes) * args.num_processes)
    if not 0 <= args.after_calls < max(1, last):
        raise UserError(f"--after-calls must be below {last}: so many calls are looked at")


def _designs(args: argparse.Namespace) -> list[tuple[str, Any]]:
    """The designs to compare, by name."""
    from query_mutator.bench.strategies import STRATEGIES, WITHOUT_GROUPING

    designs = STRATEGIES | (WITHOUT_GROUPING if args.max_loaded == 1 else {})
    names = list(designs) if args.designs is None else args.designs
    unknown = [name for name in names if name not in designs]
    if unknown:
        raise UserError(f"no design '{unknown[0]}'; there are: {', '.join(designs)}")
    return [(name, designs[name]) for name in names]


def _plan(
    args: argparse.Namespace, arena: Any
) -> Iterator[tuple[str, int | None, Callable[[], list[Any]]]]:
    """What to measure, in order: a name, a batch size, and what measures it."""
    from query_mutator.bench.measure import measured
    from query_mutator.bench.strategies import OURS, Workload
    from query_mutator.models.roles import Roles

    roles = Roles(arena.connection.mutator_model, arena.connection.target_model)

    def work(batch: int | None) -> Workload:
        steps = args.num_queries // args.num_processes
        return Workload(args.num_processes, steps, batch, roles)

    for name, design in _designs(args):
        after = args.after_calls if name == OURS else 0
        for batch in args.batch_size if name != "sequential" else [1]:
            yield name, batch, partial(measured, name, design, work(batch), arena, after=after)
    if args.peers:
        from query_mutator.bench.peers import LOOP, PEERS, measure_peer

        for name, peer in PEERS.items():
            for batch in args.batch_size if name != LOOP else [1]:
                yield name, batch, partial(measure_peer, name, peer, work(batch), arena)
    for batch in args.batch_size if args.training else []:
        from query_mutator.bench.training_run import TRAINING, UNGROUPED_TRAINING, training_run

        for name in [TRAINING, UNGROUPED_TRAINING] if args.max_loaded == 1 else [TRAINING]:
            run = partial(training_run, name, args.training, work(batch), arena, seed=args.seed)
            yield name, batch, run
    if args.overhead:
        from query_mutator.bench.overhead import overhead

        yield "overhead", 8, partial(overhead, work(8), seed=args.seed)


@contextlib.contextmanager
def _arena(args: argparse.Namespace) -> Iterator[Any]:
    """The user's servers, or simulated ones whose slots are known, with their models loaded."""
    from query_mutator.bench.measure import Arena
    from query_mutator.data.loading import DEFAULT_FILE
    from query_mutator.models.connect import connect
    from query_mutator.models.settings import ModelSettings
    from query_mutator.servers.simulated import DEFAULT_MODELS, start_simulated

    with contextlib.ExitStack() as stack:
        flags = [f"--slots={args.slots}", f"--mean-latency={args.mean_latency}"]
        flags += [f"--sigma={args.sigma}", f"--seed={args.seed}", f"--load-time={args.load_time}"]
        flags += [f"--max-loaded={args.max_loaded}", f"--dialects={args.dialect}"]
        flags += [f"--questions={DEFAULT_FILE}"]
        flags += ["--slots-per-model"] if args.slots_per_model else []
        children = [
            stack.enter_context(start_simulated(*flags))
            for _ in range(0 if args.server else args.num_servers)
        ]
        models = {"mutator_model": args.mutator_model, "target_model": args.target_model}
        if children:
            models = dict(zip(("mutator_model", "target_model"), DEFAULT_MODELS, strict=True))
        urls = args.server or [child.url for child in children]
        connection = connect(ModelSettings(urls, slots=8, **models))
        stack.callback(connection.close)
        slots = args.slots * len(children) * (len(DEFAULT_MODELS) if args.slots_per_model else 1)
        arena = Arena(urls, connection, children, slots or None)
        arena.load_models()
        yield arena
