"""`python -m batching lengths`: how many tokens each sample of a data set has."""

from __future__ import annotations

import argparse
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from batching.commands.parts import (
    Commands,
    add_command,
    add_dataset,
    add_group,
    add_json,
    add_lengths,
    add_overwrite,
    add_tokenizer,
    bar,
    is_lengths,
    open_lengths,
    pairs,
    partial_of,
    print_json,
)
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import counted, printable, show_warnings

PERCENTILES = ("p50", "p90", "p95", "p99")


def add_commands(commands: Commands) -> None:
    """`lengths build` and `lengths stats`."""
    group = add_group(commands, "lengths", "measure the texts of a data set, in tokens")
    build = add_command(
        group, "build", "tokenise every text once and keep its length", run_build,
        example="-d examples/batching/texts.jsonl -t bytes -o lengths.jsonl",
    )  # fmt: skip
    add_dataset(build)
    add_tokenizer(build)
    build.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FILE",
        help="the file of lengths; one that an interruption left is gone on with",
    )  # fmt: skip
    add_overwrite(build)
    stats = add_command(
        group, "stats", "how many samples and tokens there are, and how long they are", run_stats,
        example="-c lengths.jsonl",
    )  # fmt: skip
    add_lengths(stats, "-c", "--cache")
    add_json(stats)


def run_build(args: argparse.Namespace) -> int:
    """Measures what is not measured yet."""
    from batching.generation.dataset import TEXTS_AT_ONCE, dataset_hash, measure_texts, read_texts
    from batching.generation.length_cache import LengthCache
    from batching.generation.tokenizers import load_tokenizer
    from query_mutator.base.files import sync

    show_warnings()
    output: Path = args.output
    if output.exists() and not is_lengths(output):
        raise UserError(f"{output} is there already and holds no lengths; choose another -o")
    tokenizer = load_tokenizer(args.tokenizer)
    hashes: Any = {
        "tokenizer_hash": tokenizer.tokenizer_hash,
        "dataset_hash": dataset_hash(args.dataset),
    }
    # All rows are read before any is measured: a bad one is told at once, and the bar has an end.
    total = sum(1 for _ in bar(read_texts(args.dataset), None, "reading", "texts"))
    path = output if output.exists() and not args.overwrite else partial_of(output)
    if args.overwrite and path.exists() and not _is_of(path, hashes):
        path.unlink()
    cache = (LengthCache.open if path.exists() else LengthCache.create)(path, **hashes)
    with cache:
        before = len(cache)
        texts = (text for text in read_texts(args.dataset) if text.sample_id not in cache)
        measured = bar(measure_texts(texts, tokenizer), total, "measuring", "texts", done=before)
        try:
            while block := list(islice(measured, TEXTS_AT_ONCE)):
                cache.add_many(block)
        except KeyboardInterrupt:
            kept = f"{len(cache):,} of {counted(total, 'length')} are kept"
            print(f"interrupted; {kept}: the same command goes on", file=sys.stderr)
            return 130
        done = len(cache)
        tokens = sum(cache.lengths().values())
    if path != output:
        os.replace(path, output)
        sync(output.parent)
    added = "all were there already" if done == before else f"{done - before:,} measured"
    print(f"{output}: {counted(done, 'length')}, {counted(tokens, 'token')} ({added})")
    return 0


def _is_of(path: Path, hashes: Any) -> bool:
    """Whether the lengths in a file are of this tokenizer and this data set."""
    from batching.generation.length_cache import LengthCache

    try:
        LengthCache.open(path, read_only=True, **hashes)
    except UserError:
        return False
    return True


def run_stats(args: argparse.Namespace) -> int:
    """Shows what is in a file of lengths."""
    from batching.analyze import LengthHistogram

    show_warnings()
    cache = open_lengths(args.lengths)
    histogram = LengthHistogram.of(cache.arrays()[1])
    if args.json:
        hashes = {"tokenizer_hash": cache.tokenizer_hash, "dataset_hash": cache.dataset_hash}
        bins = ("edges", "counts")
        figures = {name: v for name, v in histogram.to_dict().items() if name not in bins}
        print_json({**figures, **hashes})
        return 0
    rows = [
        ("samples", f"{histogram.num_samples:,}"),
        ("tokens", f"{histogram.num_tokens:,}"),
        ("lengths", f"{histogram.minimum:,} to {histogram.maximum:,}"),
        ("mean", f"{histogram.mean:,.1f}"),
    ]
    for name in PERCENTILES:
        share = name.removeprefix("p")
        rows.append((f"{share} % have", f"up to {counted(histogram.percentiles[name], 'token')}"))
    rows += [("tokenizer", printable(cache.tokenizer_hash) or "not known")]
    rows += [("data set", printable(cache.dataset_hash) or "not known")]
    print(f"{args.lengths}\n{pairs(rows)}")
    return 0
