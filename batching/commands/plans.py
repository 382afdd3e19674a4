"""`python -m batching plan`: which samples go into which batch, fixed in advance."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batching.commands.parts import (
    Commands,
    add_command,
    add_group,
    add_lengths,
    add_overwrite,
    bar,
    edges,
    open_lengths,
)
from batching.commands.plan_info import add_info, in_words, tell_losses
from batching.commands.plan_shard import add_shard
from batching.commands.plan_verify import add_verify
from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import show_warnings

if TYPE_CHECKING:
    from batching.core import BatchSpec
    from batching.planning import BatchingConfig, BatchPlan

MOST_EPOCHS = 10_000
LONGEST_ROW = 2**40
"""That of the length cache: what `suggest` says can be given."""
MOST_PARTS = 2**27
PACKING = ("best_fit", "first_fit", "greedy")
OVERFLOW = ("error", "truncate", "split", "skip")
DEFAULT_BUDGET, DEFAULT_EDGES, DEFAULT_LONGEST = 16_384, (128, 256, 512, 1024), 2048
"""Written out here so that --help need not load what knows them; a test compares."""


def add_commands(commands: Commands, *, name: str = "plan") -> None:
    """`plan build`, `plan info`, `plan verify` and `plan shard`."""
    group = add_group(commands, name, "plan batches that anyone can build again")
    _add_build(group)
    add_info(group)
    add_verify(group)
    add_shard(group)


def _add_build(group: Commands) -> None:
    parser = add_command(
        group, "build", "build a plan from lengths", run_build,
        example="-l lengths.jsonl -e 2 -b 4096 --throughput -o plan",
    )  # fmt: skip
    files = parser.add_argument_group("files")
    add_lengths(files, "-l", "--lengths")
    files.add_argument("-o", "--output", required=True, type=Path, metavar="DIR", help="the plan")
    add_overwrite(files)
    batches = parser.add_argument_group("batches")
    add_budget(batches)
    add_edges(batches)
    batches.add_argument(
        "--on-overflow", choices=OVERFLOW, default="error",
        help="what becomes of longer samples; each is counted (default error: nothing is built)",
    )  # fmt: skip
    kind = parser.add_argument_group(
        "kind", "without any of these: padded to the longest row of each batch, shuffled"
    )
    either = kind.add_mutually_exclusive_group()
    either.add_argument(
        "--predictable", action="store_true",
        help="padded to the bucket, one order for all epochs: few shapes, easy to compare",
    )  # fmt: skip
    either.add_argument(
        "--throughput", action="store_true",
        help="several samples in a row, shuffled for each epoch: hardly any padding",
    )  # fmt: skip
    kind.add_argument(
        "--pack", choices=PACKING,
        help="several samples in a row: best_fit fills rows most, first_fit and greedy follow the "
        "order of the samples",
    )  # fmt: skip
    order = parser.add_argument_group("epochs")
    add = order.add_argument
    add(
        "-e", "--epochs", type=at_least(1, MOST_EPOCHS), default=1, metavar="N",
        help="the number of epochs (default 1)",
    )  # fmt: skip
    add("--seed", type=at_least(0), default=42, metavar="N", help="of their order (default 42)")
    add(
        "--drop-last", action="store_true",
        help="leave out the last batch of each bucket where it is not full",
    )  # fmt: skip


def add_budget(parser: Any) -> None:
    """The flag that bounds a batch."""
    parser.add_argument(
        "-b", "--token-budget", type=at_least(1), default=DEFAULT_BUDGET, metavar="N",
        help=f"the most tokens in a batch, padding included (default {DEFAULT_BUDGET})",
    )  # fmt: skip


def add_edges(parser: Any) -> None:
    """The flags that say what the buckets are."""
    parser.add_argument(
        "--bucket-edges", type=edges, default=DEFAULT_EDGES, metavar="N,N,N",
        help="samples up to each of these lengths are batched together, or none (default "
        f"{','.join(map(str, DEFAULT_EDGES))}; see `suggest`)",
    )  # fmt: skip
    parser.add_argument(
        "--overflow-max", type=at_least(1, LONGEST_ROW), metavar="N",
        help=f"the longest row (default {DEFAULT_LONGEST}, or twice the last edge if that is more)",
    )  # fmt: skip


def longest_row(args: argparse.Namespace) -> int:
    """Where the last bucket ends."""
    last_edge: int = args.bucket_edges[-1] if args.bucket_edges else 0
    longest: int = args.overflow_max or max(DEFAULT_LONGEST, 2 * last_edge)
    if longest <= last_edge:
        raise UserError(f"--overflow-max must be above the last edge, {last_edge}, not {longest}")
    return longest


def run_build(args: argparse.Namespace) -> int:
    """Builds a plan and writes it, or says that it is there already."""
    from batching.planning import BatchPlanBuilder

    show_warnings()
    config = config_of(args)
    _check_place(args.output)
    lengths = open_lengths(args.lengths)
    ids, values = lengths.arrays()
    if args.on_overflow == "split" and (values // config.longest_row).sum() > MOST_PARTS:
        raise UserError(f"{args.lengths} would be split into more than {MOST_PARTS:,} parts")
    builder = BatchPlanBuilder((ids, values), config, lengths.dataset_hash, lengths.tokenizer_hash)
    try:
        plan = builder.build(args.epochs)
    except UserError as error:
        reason = str(error).split("\n")[0]
        raise UserError(
            f"{reason}\nRaise --token-budget and --overflow-max, or choose what becomes of them: "
            "--on-overflow truncate, split or skip"
        ) from error
    if not plan.num_batches:
        raise UserError(f"no sample of {args.lengths} is left to batch: all are skipped")
    if args.output.exists() and any(args.output.iterdir()) and not args.overwrite:
        if _fingerprint_in(args.output) != plan.fingerprint:
            raise UserError(
                f"{args.output} holds another plan; choose another -o, or replace it with "
                "--overwrite"
            )
        print(f"{args.output} is this plan already: {in_words(plan)}")
        return 0
    _with_bar(plan).save(args.output)
    print(f"{args.output}: {in_words(plan)}")
    tell_losses(plan)
    return 0


def _with_bar(plan: BatchPlan) -> BatchPlan:
    """The same plan, with a bar for whoever goes through its batches, as saving it does."""
    from batching.planning import EpochPlan

    class ShownEpoch(EpochPlan):
        def __iter__(self) -> Iterator[BatchSpec]:
            return bar(super().__iter__(), len(self), f"writing epoch {self.epoch}", "batches")

    shown = (ShownEpoch(epoch.epoch, epoch.table, epoch.ids, epoch.counts) for epoch in plan.epochs)
    return replace(plan, epochs=tuple(shown))


def config_of(args: argparse.Namespace) -> BatchingConfig:
    """The settings that the flags stand for."""
    from batching.planning import BatchingConfig, PackingConfig
    from batching.planning.config import LONGEST_PACKED

    longest = longest_row(args)
    others: dict[str, Any] = {"drop_last": args.drop_last, "on_overflow": args.on_overflow}
    packed = min(longest, args.token_budget)
    if (args.pack or args.throughput) and packed > LONGEST_PACKED:
        raise UserError(
            f"packed rows hold {LONGEST_PACKED:,} tokens at most, not {packed:,}; "
            "lower --overflow-max or --token-budget"
        )
    if args.pack:
        others["packing"] = PackingConfig(args.pack, packed)
    make: Callable[..., BatchingConfig] = BatchingConfig
    if args.predictable:
        make = BatchingConfig.predictable
    elif args.throughput:
        make = BatchingConfig.throughput
    return make(
        token_budget=args.token_budget,
        bucket_edges=args.bucket_edges,
        overflow_max=longest,
        seed=args.seed,
        **others,
    )


def _check_place(path: Path) -> None:
    """Refuses a place that holds anything but a plan before any work is done."""
    from batching.planning.files import META

    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise UserError(f"{path} is a file; choose another -o")
    if path.is_dir() and any(path.iterdir()) and not (path / META).is_file():
        raise UserError(f"{path} is not empty and holds no plan; choose another -o")


def _fingerprint_in(path: Path) -> str:
    """Of the plan in a directory; "" for a damaged one."""
    from batching.planning import BatchPlan

    try:
        return BatchPlan.load(path).fingerprint
    except UserError:
        return ""
