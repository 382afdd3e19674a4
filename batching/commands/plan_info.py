"""`python -m batching plan info`: what a plan holds, in words."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from batching.analyze.text import percent
from batching.commands.parts import Commands, add_command, add_json, add_plan, pairs, print_json
from query_mutator.base.tables import layout
from query_mutator.base.terminal import counted, printable

if TYPE_CHECKING:
    from batching.core import BatchShapeHistogram
    from batching.planning import BatchPlan

SHAPES_SHOWN = 5


def add_info(group: Commands) -> None:
    """`plan info`."""
    parser = add_command(
        group, "info", "what a plan holds, and how well it uses its tokens", run_info,
        example="-p plan",
    )  # fmt: skip
    add_plan(parser)
    add_json(parser)


def run_info(args: argparse.Namespace) -> int:
    """Shows a plan."""
    from batching.core import BatchShapeHistogram
    from batching.planning import BatchPlan

    plan = BatchPlan.load(args.plan)
    tables = [BatchShapeHistogram.of(epoch.table).counts for epoch in plan.epochs]
    shapes = BatchShapeHistogram(sum(tables, Counter()))
    if args.json:
        print_json(_as_json(plan, shapes))
        return 0
    common = ", ".join(
        f"{rows:,} × {width:,} ({many:,})"
        for (rows, width), many in shapes.most_common(SHAPES_SHOWN)
    )
    print(f"{args.plan}: {in_words(plan)}\n{pairs(_settings(plan))}\n\n{_epochs(plan)}")
    print(f"\n  {counted(shapes.num_shapes, 'shape')} of batches; most frequent: {common}")
    tell_losses(plan)
    return 0


def _as_json(plan: BatchPlan, shapes: BatchShapeHistogram) -> dict[str, Any]:
    epochs = [{**epoch.summary(), "metrics": epoch.metrics.to_dict()} for epoch in plan.epochs]
    common = [
        {"rows": rows, "width": width, "batches": many}
        for (rows, width), many in shapes.most_common(SHAPES_SHOWN)
    ]
    return {
        "fingerprint": plan.fingerprint,
        **plan.meta.to_dict(),
        "epochs": epochs,
        "metrics": plan.metrics.to_dict(),
        "num_shapes": shapes.num_shapes,
        "most_common_shapes": common,
    }


def _epochs(plan: BatchPlan) -> str:
    header = ["  epoch", "batches", "rows", "samples", "tokens", "padding", "left out"]
    rows = []
    for epoch in plan.epochs:
        metrics = epoch.metrics
        numbers = (metrics.num_batches, metrics.num_rows, metrics.num_samples, metrics.real_tokens)
        left_out = metrics.skipped_samples
        shares = (percent(metrics.padding_waste), "–" if left_out is None else f"{left_out:,}")
        rows.append([f"  {epoch.epoch}", *(f"{number:,}" for number in numbers), *shares])
    return layout([header, *rows])


def in_words(plan: BatchPlan) -> str:
    metrics = plan.metrics
    shard = plan.meta.shard
    rank = f"rank {shard.rank} of {shard.world_size}, " if shard else ""
    return (
        f"{rank}{counted(plan.num_epochs, 'epoch')}, {counted(plan.num_batches, 'batch')}, "
        f"{percent(metrics.efficiency)} of their places hold a token"
    )


def _settings(plan: BatchPlan) -> list[tuple[str, str]]:
    meta, config = plan.meta, plan.meta.config
    limits = [f"{edge:,}" for edge in (*config.bucket_edges, config.overflow_max)]
    width = {"pad_to_bucket": "their bucket's edge", "pad_to_max": "the longest in the batch"}
    packing = "none: one sample a row"
    if config.packing:
        packing = (
            f"{config.packing.mode}, rows of up to {counted(config.packing.max_length, 'token')}"
        )
    order = "shuffled for each epoch" if config.shuffle else "the same in every epoch"
    return [
        ("fingerprint", printable(plan.fingerprint)),
        ("built from", f"{counted(meta.source.num_samples, 'sample')}, {_hashes(plan)}"),
        ("budget", f"{counted(config.token_budget, 'token')} a batch, padding included"),
        ("buckets", f"up to {', '.join(limits)} tokens"),
        ("padding", f"rows are padded to {width[config.pad_policy]}"),
        ("packing", packing),
        ("order", f"{order}, seed {config.seed}"),
        ("too long", str(config.on_overflow)),
    ]


def _hashes(plan: BatchPlan) -> str:
    digests = (("data set", plan.meta.dataset_hash), ("tokenizer", plan.meta.tokenizer_hash))
    return ", ".join(f"{what} {printable(digest[:12]) or 'not known'}" for what, digest in digests)


def tell_losses(plan: BatchPlan) -> None:
    """Says on standard error what is not in the batches as it is in the data."""
    counts = plan.epochs[0].counts
    losses = [
        f"{counted(number, 'sample')} {what}"
        for number, what in (
            (counts.truncated, "truncated"),
            (counts.split, "split"),
            (counts.skipped, "skipped as too long"),
            (counts.too_short, "skipped as empty"),
            (counts.dropped, "dropped with batches that are not full"),
        )
        if number
    ]
    if losses:
        lost = f"; {counted(counts.lost_tokens, 'token')} lost" if counts.lost_tokens else ""
        print(f"note: in epoch 0, {', '.join(losses)}{lost}", file=sys.stderr)
