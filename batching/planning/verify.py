"""Is a plan sound, and is it the one that these lengths give?"""

from __future__ import annotations

import numpy as np

from batching.core import Lengths, ids_and_lengths
from batching.planning.builder import BatchPlanBuilder
from batching.planning.epochs import EpochPlan
from batching.planning.fingerprint import lengths_digest
from batching.planning.plan import BatchPlan
from query_mutator.base.errors import UserError


def verify(plan: BatchPlan, lengths: Lengths | None = None) -> list[str]:
    """What is wrong with a plan, a line each; with its lengths, also how it differs from theirs.

    An empty list means that the plan keeps its budget and its rules, and, with lengths, that
    building it again gives the same fingerprint.
    """
    problems = [problem for epoch in plan.epochs for problem in _unsound(epoch, plan)]
    if lengths is None:
        return problems
    ids, values = ids_and_lengths(lengths)
    if problem := other_lengths(plan, (ids, values)):
        problems.append(problem)
    try:
        rebuilt = BatchPlanBuilder.from_plan(plan, (ids, values)).build()
    except UserError as error:
        return [*problems, f"cannot be built from these lengths: {error}".replace("\n", " ")]
    for here, there in zip(plan.epochs, rebuilt.epochs, strict=True):
        problems += _difference(here, there)
    if not problems and rebuilt.fingerprint != plan.fingerprint:
        problems.append("the counts of skipped or changed samples differ")
    return problems


def other_lengths(plan: BatchPlan, lengths: Lengths) -> str:
    """What a plan was built from where that was not these samples; "" where it was."""
    ids, values = ids_and_lengths(lengths)
    source = plan.meta.source
    if len(ids) != source.num_samples:
        return f"built from {source.num_samples} samples, and these are {len(ids)}"
    if lengths_digest(ids, values) != source.digest:
        return "built from other lengths, other ids, or the same in another order"
    return ""


def _unsound(epoch: EpochPlan, plan: BatchPlan) -> list[str]:
    table, config = epoch.table, plan.meta.config
    batch_of_row = np.repeat(np.arange(table.num_batches), table.rows_per_batch)
    problems = {
        f"is over the budget of {config.token_budget} tokens": (
            table.token_counts > config.token_budget
        ),
        "has no row": table.rows_per_batch < 1,
        "is narrower than one of its rows": np.isin(
            np.arange(table.num_batches),
            batch_of_row[table.row_lengths > table.width[batch_of_row]],
        ),
    }
    found = [
        f"epoch {epoch.epoch}: batch {np.argmax(bad)} {what} ({bad.sum()} such)"
        for what, bad in problems.items()
        if bad.any()
    ]
    if not epoch.shard_counts.repeated and (twice := _overlap(epoch)):
        found.append(f"epoch {epoch.epoch}: tokens of sample {twice!r} come twice")
    return found


def _overlap(epoch: EpochPlan) -> str:
    """The id of a sample of which some tokens are in two places; "" where there is none."""
    table = epoch.table
    order = np.lexsort((table.start, table.sample))
    sample, start = table.sample[order], table.start[order]
    ends = start + table.length[order]
    twice = (sample[1:] == sample[:-1]) & (start[1:] < ends[:-1])
    return epoch.ids[int(sample[np.argmax(twice)])] if twice.any() else ""


def _difference(here: EpochPlan, there: EpochPlan) -> list[str]:
    if here.digest == there.digest:
        return []
    if len(here) != len(there):
        return [f"epoch {here.epoch}: {len(here)} batches, and the lengths give {len(there)}"]
    for index, (ours, theirs) in enumerate(zip(here, there, strict=True)):
        if ours != theirs:
            return [
                f"epoch {here.epoch}: batch {index} differs: {len(ours.sample_ids)} samples in "
                f"{ours.batch_size} × {ours.max_length}, and the lengths give "
                f"{len(theirs.sample_ids)} in {theirs.batch_size} × {theirs.max_length}"
            ]
    raise AssertionError("equal batches have equal digests")
