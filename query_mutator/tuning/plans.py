"""Which samples go into which batch of which epoch, and how full the batches are."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from batching import (
    BatchingConfig,
    BatchPlan,
    BatchPlanBuilder,
    EpochPlan,
    OverflowPolicy,
    PackingConfig,
    Sample,
)
from batching.generation.batches import planned_piece
from batching.planning import other_lengths
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import counted
from query_mutator.tuning.batches import Packing
from query_mutator.tuning.settings import DEFAULT_TOKEN_BUDGET, TuningSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Epoch:
    """The samples of an epoch by id, and its batches."""

    samples: Mapping[str, Sample]
    plan: EpochPlan


def batching_config(settings: TuningSettings, packing: Packing) -> BatchingConfig:
    """How batches are formed where no plan is given; a warning tells what cannot be had."""
    edges = bucket_edges(settings)
    if settings.pack and packing is Packing.NONE:
        logger.warning(
            "%s carries a state from token to token: its samples cannot share a row. They are "
            "sorted by length instead (--pack has no effect)",
            settings.model,
        )
    packs = packing is not Packing.NONE and (settings.pack or not edges)
    longest = settings.pack_max_len if packs else (edges[-1] if edges else settings.pack_max_len)
    budget = settings.token_budget or max(DEFAULT_TOKEN_BUDGET, longest)
    longest = min(longest, budget) if packs else budget
    inner = [edge for edge in edges if edge < longest] or [max(1, longest - 1)]
    return BatchingConfig(
        token_budget=budget,
        bucket_edges=tuple(inner),
        overflow_max=max(longest, inner[-1] + 1),
        seed=settings.seed,
        on_overflow=OverflowPolicy.TRUNCATE,
        packing=PackingConfig(max_length=longest) if packs else None,
    )


def planned(samples: Sequence[Sample], config: BatchingConfig, epoch: int) -> EpochPlan:
    """The batches of an epoch, in an order of its own."""
    lengths = {sample.sample_id: len(sample) for sample in samples}
    seeded = replace(config, seed=config.seed + epoch)
    plan = BatchPlanBuilder(lengths, seeded).build(num_epochs=1).epoch(0)
    if epoch == 0:
        lost = check_learnable(
            {sample.sample_id: sample for sample in samples}, plan,
            f"a row of {config.longest_row} tokens (--token-budget, --pack-max-len)",
        )  # fmt: skip
        if plan.counts.truncated:
            logger.warning(
                "%s longer than the %d tokens of a row: only their beginnings are learned, and of "
                "%d nothing (--token-budget, --pack-max-len)",
                counted(plan.counts.truncated, "sample"),
                config.longest_row,
                lost,
            )
    return plan


def check_learnable(samples: Mapping[str, Sample], plan: EpochPlan, where: str) -> int:
    """How many samples are cut so that nothing of them is learned; refused where all are."""
    learned: Counter[str] = Counter()
    for batch in plan:
        for entry in chain.from_iterable(batch.row_entries()):
            sample, start, stop = planned_piece(samples, *entry)
            # The first token of a piece is predicted from nothing.
            learned[sample.sample_id] += sum(sample.loss_mask[start + 1 : stop])
    if learned and not learned.total():
        raise UserError(
            f"nothing is left to learn in {where}: it ends before what counts in the loss"
        )
    return sum(not count and bool(samples[name].num_loss_tokens) for name, count in learned.items())


def stored_plan(
    directory: str, packing: Packing, lengths: Mapping[str, int], model: str
) -> BatchPlan:
    """The plan of `--batchplan`; `UserError` where the model or the data are not those for it."""
    plan = BatchPlan.load(Path(directory))
    # Longer samples would be cut where the plan ends them, and nobody would know.
    if problem := other_lengths(plan, lengths):
        raise UserError(
            f"{directory} was {problem}.\n"
            f"Measure the lengths of --data with -t {model}, and build the plan again"
        )
    if plan.meta.config.packing and packing is Packing.NONE:
        raise UserError(
            f"{directory} packs several samples in a row, and the model carries a state from token "
            "to token.\nBuild a plan without --pack and --throughput"
        )
    return plan


def bucket_edges(settings: TuningSettings) -> list[int]:
    """The edges of `--bucket-edges`; none where it is not given."""
    if settings.bucket_edges is None:
        return []
    try:
        edges = [int(edge) for edge in settings.bucket_edges.split(",")]
    except ValueError:
        edges = []
    if not edges or edges[0] < 1 or sorted(set(edges)) != edges:
        raise UserError(
            "--bucket-edges must be rising whole numbers with commas between them, such as "
            f"128,256,512, not {settings.bucket_edges[:100]!r}"
        )
    return edges
