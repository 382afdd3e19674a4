"""`python -m batching plan shard`: a plan dealt out to ranks."""

from __future__ import annotations

import argparse
from pathlib import Path

from batching.commands.parts import Commands, add_command, add_overwrite, add_plan
from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import counted

MOST_RANKS = 65_536
EPOCHS_SHOWN = 5
REMAINDER = ("split", "repeat", "drop")


def add_shard(group: Commands) -> None:
    """`plan shard`."""
    parser = add_command(
        group, "shard", "deal a plan out to ranks, each with as many steps", run_shard,
        example="-p plan -w 4 -o shards",
    )  # fmt: skip
    add_plan(parser)
    add = parser.add_argument
    add(
        "-w", "--world-size", required=True, type=at_least(1, MOST_RANKS), metavar="N",
        help="the number of ranks",
    )  # fmt: skip
    add("-o", "--output", required=True, type=Path, metavar="DIR", help="gets rank_0/, rank_1/, …")
    add(
        "--remainder", choices=REMAINDER, default="split",
        help="what evens out the steps: cut the largest batches (default), repeat the first, or "
        "drop the last",
    )  # fmt: skip
    add_overwrite(parser)


def run_shard(args: argparse.Namespace) -> int:
    """Writes the part of each rank, all of them or none."""
    from batching.planning import BatchPlan, save_shards

    output: Path = args.output
    _check_shards(output, overwrite=args.overwrite)
    plan = BatchPlan.load(args.plan)
    if plan.meta.shard:
        raise UserError(f"{args.plan} is a shard already; shard the plan that it comes from")
    paths = save_shards(plan, args.world_size, output, args.remainder)
    first = BatchPlan.load(paths[0])
    steps = " and ".join(f"{len(epoch):,}" for epoch in first.epochs[:EPOCHS_SHOWN])
    more = " …" if len(first.epochs) > EPOCHS_SHOWN else ""
    print(f"{output}: {counted(args.world_size, 'rank')}, each with {steps}{more} steps per epoch")
    for epoch in first.epochs:
        done = epoch.shard_counts
        changes = [
            f"{number:,} {what}"
            for number, what in (
                (done.split, "more by cutting"),
                (done.repeated, "repeated"),
                (done.dropped, "dropped"),
            )
            if number
        ]
        if changes:
            print(f"  epoch {epoch.epoch}: batches {', '.join(changes)}")
    return 0


def _check_shards(path: Path, *, overwrite: bool) -> None:
    if not path.exists() and not path.is_symlink():
        return
    if path.is_symlink() or not path.is_dir():
        raise UserError(f"{path} is a file; choose another -o")
    names = [entry.name for entry in path.iterdir()]
    if not all(name.startswith("rank_") for name in names):
        raise UserError(f"{path} holds something else than shards; choose another -o")
    if names and not overwrite:
        raise UserError(
            f"{path} holds shards already; choose another -o, or replace them with --overwrite"
        )
