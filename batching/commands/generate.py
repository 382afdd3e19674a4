"""`python -m batching generate`: the batches of a plan as files, ready to train on."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from batching.commands.parts import Commands, add_command, add_dataset, add_plan, add_tokenizer, bar
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import counted, say_error, show_warnings

if TYPE_CHECKING:
    from batching.generation import SampleStore, Tokenizer
    from batching.planning import BatchPlan

logger = logging.getLogger(__name__)


def add_commands(commands: Commands) -> None:
    """`generate`."""
    parser = add_command(
        commands, "generate", "write the batches of a plan as .npz files", run,
        example="-p plan -d examples/batching/texts.jsonl -t bytes -o batches",
    )  # fmt: skip
    add_plan(parser)
    add_dataset(parser)
    add_tokenizer(parser)
    add = parser.add_argument
    add(
        "-o", "--output", required=True, type=Path, metavar="DIR",
        help="gets manifest.json and epoch_N/batch_NNNNNN.npz; what an interruption left of the "
        "same plan is gone on with",
    )  # fmt: skip
    add(
        "--resume", action="store_true",
        help="only go on with what is there, and refuse to begin afresh",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Writes the batches that are missing."""
    from batching.generation import load_tokenizer
    from batching.planning import BatchPlan

    show_warnings()
    plan = BatchPlan.load(args.plan)
    _check_place(args.output, plan, resume=args.resume)
    tokenizer = load_tokenizer(args.tokenizer)
    problems = _other_source(plan, args.dataset, tokenizer)
    if problems:
        return _mismatch(args.plan, problems)
    names_its_source = bool(plan.meta.dataset_hash and plan.meta.tokenizer_hash)
    if names_its_source and _is_complete(args.output, plan):
        print(f"{args.output}: all {counted(plan.num_batches, 'batch')} are there already")
        return 0
    samples = _samples(args.dataset, tokenizer, plan.meta.source.num_samples)
    problems = _other_lengths(plan, samples)
    if problems:
        return _mismatch(args.plan, problems)
    return _write(args.output, plan, samples, tokenizer.pad_id)


def _write(output: Path, plan: BatchPlan, samples: SampleStore, pad_id: int) -> int:
    """Writes what is missing, and says how many batches that were."""
    from batching.generation import BatchWriter, collate

    all_of_them = counted(plan.num_batches, "batch")
    resume = output.exists() and any(output.iterdir())
    rows = rows_without_loss = 0
    with BatchWriter(output, plan, pad_id=pad_id, resume=resume, samples=samples) as writer:
        before = writer.num_written
        missing = bar(writer.missing(), plan.num_batches, "writing", "batches", done=before)
        try:
            for epoch, index, batch in missing:
                collated = collate(samples, batch, pad_id)
                writer.write(epoch, index, collated)
                rows += batch.batch_size
                rows_without_loss += collated.num_rows_without_loss
        except KeyboardInterrupt:
            kept = f"{writer.num_written:,} of {all_of_them} are kept"
            print(f"interrupted; {kept}: the same command goes on", file=sys.stderr)
            return 130
        writer.finish()
        if rows_without_loss:
            logger.warning(
                "%s of the %s written have no token that counts in the loss: their texts were cut "
                "before or after what is learned; plan with a longer limit, or skip long texts",
                f"{rows_without_loss:,}",
                counted(rows, "row"),
            )
        print(f"{output}: {all_of_them} ({writer.num_written - before:,} written)")
        return 0


def _samples(dataset: Path, tokenizer: Tokenizer, total: int) -> SampleStore:
    from batching.generation import SampleStore, encode_texts, read_texts

    texts = encode_texts(read_texts(dataset), tokenizer)
    return SampleStore(bar(texts, total, "tokenising", "texts"))


def _check_place(path: Path, plan: BatchPlan, *, resume: bool) -> None:
    """Refuses a place that holds anything but batches of this plan, before any work is done."""
    from batching.generation import Manifest

    if (path.exists() or path.is_symlink()) and not path.is_dir():
        raise UserError(f"{path} is a file; choose another -o")
    names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    if not [name for name in names if not name.startswith(".")]:
        if resume:
            raise UserError(f"--resume, but {path} holds no batches to go on with")
        return
    if "manifest.json" not in names:
        raise UserError(f"{path} is not empty and holds no batches; choose another -o")
    if Manifest.read(path).plan_fingerprint != plan.fingerprint:
        raise UserError(f"{path} holds the batches of another plan; choose another -o")


def _other_source(plan: BatchPlan, dataset: Path, tokenizer: Tokenizer) -> list[str]:
    """How the data set and the tokenizer differ from those that the plan was built for."""
    from batching.generation import dataset_hash

    meta = plan.meta
    return [
        f"the {what} is not the one that the plan was built for ({ours[:12]}, not {planned[:12]})"
        for what, ours, planned in (
            ("tokenizer", tokenizer.tokenizer_hash, meta.tokenizer_hash),
            ("data set", dataset_hash(dataset), meta.dataset_hash),
        )
        if planned and ours != planned
    ]


def _other_lengths(plan: BatchPlan, samples: SampleStore) -> list[str]:
    from batching.core import ids_and_lengths
    from batching.planning.fingerprint import lengths_digest

    source = plan.meta.source
    if len(samples) != source.num_samples:
        planned = counted(source.num_samples, "sample")
        return [f"the plan was built from {planned}, and the data set has {len(samples):,}"]
    if lengths_digest(*ids_and_lengths(samples.lengths())) != source.digest:
        return ["the samples have other ids, lengths or another order than the plan was built from"]
    return []


def _is_complete(output: Path, plan: BatchPlan) -> bool:
    from batching.generation import BatchReader

    if not output.exists():
        return False
    try:
        BatchReader(output, plan).verify()
    except UserError:
        return False
    return True


def _mismatch(plan: Path, problems: list[str]) -> int:
    say_error(
        f"{'; '.join(problems)}.\n"
        f"Nothing was written. Measure the lengths and build {plan} again, or name what it is of"
    )
    return 1
