"""`python -m batching histogram`, `analyze` and `suggest`: lengths, buckets, and better ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batching.commands.parts import (
    NO_EDGES,
    Commands,
    add_command,
    add_json,
    add_lengths,
    add_overwrite,
    edges,
    open_lengths,
    print_json,
)
from batching.commands.plans import add_budget, add_edges, longest_row
from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import show_warnings

if TYPE_CHECKING:
    from batching.core import BucketSpec, IntArray

GOALS = ("waste", "balance", "memory")
LONG_NAMES = {
    "minimize_waste": "waste",
    "balance_buckets": "balance",
    "minimize_memory": "memory",
}
MOST_BUCKETS = 256
MOST_BINS = 1_000


def add_commands(commands: Commands) -> None:
    """The three commands."""
    histogram = add_command(
        commands, "histogram", "show how long the samples are", run_histogram,
        example="-c lengths.jsonl --plot lengths.png",
    )  # fmt: skip
    _add_shared(histogram)
    histogram.add_argument(
        "--bins", type=at_least(2, MOST_BINS), default=20, metavar="N",
        help="the most bars (default 20)",
    )  # fmt: skip
    analyze = add_command(
        commands, "analyze", "show what buckets make of the samples, and whether another way "
        "is better", run_analyze,
        example="-c lengths.jsonl --bucket-edges 128,256,512 -b 4096",
    )  # fmt: skip
    _add_shared(analyze)
    analyze.add_argument(
        "--plot-ways", type=Path, metavar="FILE.png", help="draw the ways to batch side by side"
    )
    add_edges(analyze)
    add_budget(analyze)
    suggest = add_command(
        commands, "suggest", "find the best bucket edges there are for a goal", run_suggest,
        example="-c lengths.jsonl --goal waste -n 8",
    )  # fmt: skip
    _add_shared(suggest)
    add = suggest.add_argument
    add(
        "--goal", choices=GOALS, default="waste", type=lambda name: LONG_NAMES.get(name, name),
        help="the least padding (default), buckets of like size, or the least memory for attention "
        f"(or by their longer names: {', '.join(LONG_NAMES)})",
    )  # fmt: skip
    add(
        "-n", "--num-buckets", type=at_least(2, MOST_BUCKETS), default=5, metavar="N",
        help="the most buckets, the one above the last edge included (default 5)",
    )  # fmt: skip
    add(
        "--bucket-edges", type=edges, metavar="N,N,N",
        help="the edges in use, to compare with (default 128,256,512,1024)",
    )  # fmt: skip
    add(
        "--overflow-max", type=at_least(2), metavar="N",
        help="the longest row; longer samples are left out (default: the longest sample)",
    )  # fmt: skip
    add(
        "--multiple-of", type=at_least(1), default=1, metavar="N",
        help="edges are multiples of this, say 8 or 64 for a GPU (default 1)",
    )  # fmt: skip


def _add_shared(parser: argparse.ArgumentParser) -> None:
    add_lengths(parser, "-c", "--cache")
    output = parser.add_argument_group("output", "text, unless something else is asked for")
    add_json(output)
    output.add_argument("--plot", type=Path, metavar="FILE.png", help="draw it as well")
    add_overwrite(output)


def run_histogram(args: argparse.Namespace) -> int:
    """Shows the lengths."""
    from batching.analyze import LengthHistogram, draw_histogram

    lengths = _lengths(args, args.plot)
    histogram = LengthHistogram.of(lengths, args.bins)
    _show(args, histogram.to_text(), histogram.to_dict())
    _draw(args, args.plot, lambda path: draw_histogram(histogram, path))
    return 0


def run_analyze(args: argparse.Namespace) -> int:
    """Shows the buckets one by one, then the ways to batch and which one to take."""
    from batching.analyze import BucketEfficiency, draw_buckets, draw_report, efficiency_report
    from batching.core import BucketSpec

    spec = BucketSpec(args.bucket_edges, longest_row(args))
    lengths = _lengths(args, args.plot, args.plot_ways)
    efficiency = BucketEfficiency.of(lengths, spec, args.token_budget)
    report = efficiency_report(lengths, args.token_budget, spec)
    text = f"{efficiency.to_text()}\n\n{report.to_text()}"
    _show(args, text, {"buckets": efficiency.to_dict(), "report": report.to_dict()})
    _draw(args, args.plot, lambda path: draw_buckets(efficiency, path))
    _draw(args, args.plot_ways, lambda path: draw_report(report, path))
    return 0


def run_suggest(args: argparse.Namespace) -> int:
    """Shows the best edges, and the flags that make a plan with them."""
    from batching.analyze import LengthHistogram, draw_suggestion, suggest

    lengths = _lengths(args, args.plot)
    suggestion = suggest(
        lengths,
        args.num_buckets - 1,
        args.goal,
        in_use=_spec_in_use(args, int(lengths.max())),
        overflow_max=args.overflow_max,
        multiple_of=args.multiple_of,
    )
    spec = suggestion.spec
    shown = ",".join(map(str, spec.edges)) or NO_EDGES
    flags = f"--bucket-edges {shown} --overflow-max {spec.overflow_max}"
    text = f"{suggestion.to_text()}\n\nfor `plan build`: {flags}"
    _show(args, text, {**suggestion.to_dict(), "flags": flags})
    histogram = LengthHistogram.of(lengths)
    _draw(args, args.plot, lambda path: draw_suggestion(suggestion, histogram, path))
    return 0


def _spec_in_use(args: argparse.Namespace, longest: int) -> BucketSpec | None:
    """The buckets to compare with; None for the default ones."""
    from batching.core import BucketSpec

    if args.bucket_edges is None:
        return None
    return BucketSpec(args.bucket_edges, max(longest, *(edge + 1 for edge in args.bucket_edges), 1))


def _lengths(args: argparse.Namespace, *plots: Path | None) -> IntArray:
    """The lengths; pictures that cannot be written are told before any work is done."""
    show_warnings()
    for plot in filter(None, plots):
        if plot.suffix.lower() != ".png":
            raise UserError(f"pictures are PNG files: name a FILE.png, not {plot.name!r}")
        if plot.exists() and not args.overwrite:
            raise UserError(f"{plot} is there already; name another, or replace it: --overwrite")
    _, lengths = open_lengths(args.lengths).arrays()
    return lengths


def _show(args: argparse.Namespace, text: str, values: dict[str, Any]) -> None:
    if args.json:
        print_json(values)
    else:
        print(text)


def _draw(args: argparse.Namespace, path: Path | None, draw: Callable[[Path], object]) -> None:
    if path is not None:
        draw(path)
        if not args.json:
            print(f"picture: {path}")
