"""How full are packed rows, and how long does packing take? Beside TRL's and axolotl's packing.

All pack the same lengths in the same run, and only what does the same work stands in one table:

- assignment alone, which sequences share a row: ours beside axolotl's, in one process and in groups
  of its default size;
- the whole work, from token arrays to packed arrays: ours beside TRL's `pack_dataset`, which gets
  the whole set at once, since it packs best so. Both copy the same four-byte tokens and give the
  lengths in each row; position and segment ids, which TRL leaves to the collator, are timed apart.

`of bound` is the Martello-Toth lower bound over the rows used: 100 % is as few as there can be.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from batching.core import IntArray
from batching.core.arrays import as_lengths, offsets_of
from batching.planning import (
    BatchingConfig,
    BatchPlan,
    BatchPlanBuilder,
    PackingConfig,
    PackingMode,
    pack_arrays,
)
from batching.planning.bins import lower_bound, pack_lengths
from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main, counted, leave
from query_mutator.base.untrusted import parse_json, read_text

CAPACITY = 2048
MEDIAN, MEAN = 219, 336
MANY = 1_000_000
PLANNED = {
    "predictable": BatchingConfig.predictable(),
    "padded to the longest": BatchingConfig(),
    "packed": BatchingConfig.throughput(),
}

Pack = Callable[[], int]
"""Packs some lengths into rows of `CAPACITY`; returns how many rows it took."""


@dataclass(frozen=True)
class Packed:
    """What one way of packing made of some lengths."""

    name: str
    num_rows: int
    best_s: float


def lognormal_lengths(count: int, seed: int = 0) -> IntArray:
    """Lengths like those of instruction data: median 219, mean 336, at most 2048."""
    sigma = np.sqrt(2 * np.log(MEAN / MEDIAN))
    drawn = np.random.default_rng(seed).lognormal(np.log(MEDIAN), sigma, count)
    return np.clip(np.rint(drawn), 1, CAPACITY).astype(np.int64)


def read_lengths(path: str) -> IntArray:
    """The lengths in a JSON file: a list of whole numbers from 1 to 2048."""
    try:
        lengths = as_lengths(parse_json(read_text(path, "lengths")))
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(f"lengths {path} is no JSON list of whole numbers: {error}") from error
    if not len(lengths) or lengths.min() < 1 or lengths.max() > CAPACITY:
        raise UserError(f"lengths {path} must hold numbers from 1 to {CAPACITY}, and some")
    return lengths


def our_assignment(lengths: IntArray) -> dict[str, Pack]:
    """This project's assignment of these lengths to rows, in every mode."""
    return {
        f"ours, {mode.replace('_', ' ')}": partial(_assigned, lengths, mode) for mode in PackingMode
    }


def _assigned(lengths: IntArray, mode: PackingMode) -> int:
    return pack_lengths(lengths, CAPACITY, mode).num_bins


def our_packing(lengths: IntArray) -> dict[str, Pack]:
    """This project's packing of token arrays of these lengths, made beforehand."""
    offsets, tokens = offsets_of(lengths), tokens_of(lengths)

    def pack() -> int:
        return pack_arrays(tokens, offsets, PackingConfig(max_length=CAPACITY)).num_rows

    def pack_with_ids() -> int:
        packed = pack_arrays(tokens, offsets, PackingConfig(max_length=CAPACITY))
        packed.position_ids(), packed.segment_ids()
        return packed.num_rows

    return {"ours": pack, "ours, with position and segment ids": pack_with_ids}


def tokens_of(lengths: IntArray, kind: type[np.integer] = np.int32) -> npt.NDArray[np.integer]:
    """Tokens for sequences of these lengths, one sequence after the other."""
    return (np.arange(lengths.sum(), dtype=np.int32) % 50_000).astype(kind)


def trl_packing(lengths: IntArray, kind: type[np.integer] = np.int32) -> Pack:
    """TRL's best-fit decreasing on a dataset of token arrays of these lengths, made beforehand.

    It never assigns without packing; with tokens of one byte, packing is the least of its work.
    """
    import pyarrow
    from datasets import Dataset, disable_progress_bars
    from trl import pack_dataset

    disable_progress_bars()
    offsets = offsets_of(lengths)
    tokens = pyarrow.array(tokens_of(lengths, kind))
    column = pyarrow.ListArray.from_arrays(pyarrow.array(offsets.astype(np.int32)), tokens)
    dataset = Dataset(pyarrow.table({"input_ids": column}))
    whole: dict[str, Any] = {"batch_size": len(lengths)}
    return lambda: len(pack_dataset(dataset, CAPACITY, strategy="bfd", map_kwargs=whole))


def axolotl_packing(lengths: IntArray) -> Pack:
    """axolotl's multipack, compiled by numba beforehand."""
    from axolotl.utils.samplers.multipack import pack_parallel

    def pack(values: IntArray) -> int:
        bins = pack_parallel(values, CAPACITY, group_size=100_000, bin_size=200, num_processes=1)
        return len(bins)

    pack(lengths[:10])
    return lambda: pack(lengths)


Peers = dict[str, tuple[tuple[str, ...], Callable[[IntArray], Pack]]]


@dataclass(frozen=True)
class Work:
    """What is timed: our ways of doing it, and the peers that do the same."""

    ours: Callable[[IntArray], dict[str, Pack]]
    peers: Peers


ASSIGNMENT = "assignment alone"
WHOLE = "whole work, from token arrays to packed arrays"
TRL = ("trl", "datasets", "pyarrow")
WORKS = {
    ASSIGNMENT: Work(
        our_assignment,
        {
            "axolotl, first fit": (("axolotl", "numba", "accelerate"), axolotl_packing),
            "TRL, with tokens of one byte": (TRL, partial(trl_packing, kind=np.int8)),
        },
    ),
    WHOLE: Work(our_packing, {"TRL, best fit decreasing": (TRL, trl_packing)}),
}


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(work: Work, lengths: IntArray, repeats: int, *, peers: bool = True) -> list[Packed]:
    """Every way of some work on the same lengths; a peer that is not there is told in a line."""
    ways = work.ours(lengths)
    for name, (packages, prepare) in work.peers.items() if peers else ():
        if missing := [package for package in packages if not find_spec(package)]:
            print(f"{name}: not compared, {missing[0]} is not installed (make dev)")
            continue
        try:
            ways[name] = prepare(lengths)
        except ImportError as error:
            print(f"{name}: not compared, it cannot be imported here: {error}")
    rows = {name: pack() for name, pack in ways.items()}
    # In turn, and the fastest of each: what others do on the machine disturbs all alike.
    rounds = [{name: seconds(pack) for name, pack in ways.items()} for _ in range(repeats)]
    return [Packed(name, rows[name], min(times[name] for times in rounds)) for name in ways]


def show(what: str, lengths: IntArray, results: Sequence[Packed]) -> None:
    """A table: rows, efficiency, share of the bound, time, and the time as a multiple of ours."""
    bound, ours = lower_bound(lengths, CAPACITY), results[0]
    print(what)
    print(f"{'':35} {'rows':>8} {'efficiency':>11} {'of bound':>9} {'ms':>9} {'times ours':>11}")
    for result in results:
        efficiency = lengths.sum() / (result.num_rows * CAPACITY)
        print(
            f"{result.name:35} {result.num_rows:>8,} {efficiency:>11.3%} "
            f"{bound / result.num_rows:>9.3%} {1000 * result.best_s:>9.1f} "
            f"{result.best_s / ours.best_s:>11.1f}"
        )


def show_many(repeats: int) -> None:
    """How long a million lengths take: packed, planned, and the fingerprint of the plan."""
    lengths = lognormal_lengths(MANY, seed=1)
    print(f"\n{MANY:,} lengths, ms")
    packing_s = min(seconds(lambda: pack_lengths(lengths, CAPACITY)) for _ in range(repeats))
    print(f"{'packed':40} {1000 * packing_s:>9.0f}")
    for name, config in PLANNED.items():
        build = partial(plan_of, lengths, config)
        plan_s = min(seconds(build) for _ in range(repeats))
        plan = build()
        digest_s = seconds(partial(getattr, plan, "fingerprint"))
        print(f"{f'one epoch planned, {name}':40} {1000 * plan_s:>9.0f}", end="   ")
        print(f"efficiency {plan.metrics.efficiency:.2%}, fingerprint {1000 * digest_s:.0f} more")


def plan_of(lengths: IntArray, config: BatchingConfig) -> BatchPlan:
    """A plan of one epoch."""
    return BatchPlanBuilder(lengths, config).build(num_epochs=1)


def run(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark."""
    parser = OneLineParser(
        prog="python -m benchmarks.packing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.packing --lengths lengths.json --repeats 5",
    )
    parser.add_argument("--lengths", metavar="FILE", help="a JSON list of lengths to pack as well")
    parser.add_argument(
        "--count", type=at_least(1), default=100_000, help="drawn lengths (default: 100000)"
    )
    parser.add_argument(
        "--repeats", type=at_least(1), default=3, help="the fastest of so many (default: 3)"
    )
    parser.add_argument("--no-peers", action="store_true", help="measure only our own packing")
    args = parser.parse_args(argv)
    sets = {f"lognormal, median {MEDIAN}, mean {MEAN}": lognormal_lengths(args.count)}
    if args.lengths:
        sets[args.lengths] = read_lengths(args.lengths)
    for title, lengths in sets.items():
        print(f"\n{title}: {counted(len(lengths), 'length')}, {lengths.sum():,} tokens, ", end="")
        print(f"rows of {CAPACITY}, at least {lower_bound(lengths, CAPACITY):,} of them")
        for what, work in WORKS.items():
            results = compare(work, lengths, args.repeats, peers=not args.no_peers)
            show(what, lengths, results)
    show_many(args.repeats)
    return 0


main = as_main(run)

if __name__ == "__main__":
    leave(main())
