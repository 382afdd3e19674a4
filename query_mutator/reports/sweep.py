"""`query-mutator sweep`: all combinations of some flags trained, compared and drawn."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import command_line, counted, show_warnings
from query_mutator.reports.grid import Dimension, SweptRun, label, parse_grid, plan

EXAMPLE = (
    "example: query-mutator sweep --grid batch-size=4,8,16 --grid num-processes=8,16,32 "
    "--seeds 3 -- --server http://localhost:11434 --num-env-steps 2000"
)
MOST_JOBS = 64


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The command line of `sweep`."""
    parser.epilog = EXAMPLE
    train = f"`{command_line('train')}`"
    add = parser.add_argument
    add(
        "--grid", action="append", default=[], metavar="NAME=VALUE,VALUE",
        help=f"a flag of {train} and the values to try (repeatable: every combination is trained)",
    )  # fmt: skip
    add("--seeds", type=at_least(1), default=3, help="runs of each combination (default 3)")
    add(
        "--jobs", type=at_least(1, MOST_JOBS), default=1,
        help="runs at once; they take time from each other, so speeds then compare only roughly",
    )  # fmt: skip
    add(
        "--output", metavar="DIR",
        help="directory of the sweep (default: under runs/, the same for the same grid and flags)",
    )  # fmt: skip
    add(
        "--share-cache", action="store_true",
        help="all runs use one response cache: cheaper, but speeds are then not compared (else "
        "each run has a cache of its own and pays for its own calls)",
    )  # fmt: skip
    add("flags", nargs="*", metavar="-- FLAGS", help=f"flags of {train}")


def run(args: argparse.Namespace) -> int:
    """Runs what is left of the sweep, then compares."""
    from query_mutator.reports.sweep_runs import SweepState, run_all

    show_warnings()
    grid = parse_grid(args.grid)
    _check_cache_flags(args.flags, share_cache=args.share_cache)
    runs = plan(grid, args.seeds, args.flags)
    folder = Path(args.output) if args.output else _default_folder(args)
    state = SweepState(folder, args.flags, share_cache=args.share_cache)
    state.begin()
    left = [one for one in runs if one.name not in state.finished]
    print(f"{folder}: {_in_words(grid, args)}, {len(left)} of them to do", file=sys.stderr)
    if not {"--use-eval", "--no-eval"} & set(args.flags):
        print(
            "the policies are compared by the held-out curve; --use-eval after -- adds the whole "
            "evaluation at the end of each run",
            file=sys.stderr,
        )
    if args.jobs > 1 and not args.share_cache:
        print(
            f"hint: {args.jobs} runs at once take time from each other: minutes compare only "
            "roughly",
            file=sys.stderr,
        )
    outcome = run_all(runs, folder, state, jobs=args.jobs, share_cache=args.share_cache)
    if outcome.interrupted:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    done = [one for one in runs if one.name in state.finished]
    if not done:
        raise UserError(f"no run of the sweep has ended well; their output is in {folder}/logs")
    conclude(folder, grid, done, by_minute=not args.share_cache)
    return 1 if outcome.failed else 0


def conclude(
    folder: Path, grid: Sequence[Dimension], done: Sequence[SweptRun], *, by_minute: bool
) -> None:
    """Prints the comparison and the golden middle; writes the picture and the whole comparison."""
    from query_mutator.reports.comparison import MINUTE, compare, default_tags
    from query_mutator.reports.golden import surface
    from query_mutator.reports.groups import Group
    from query_mutator.reports.heatmap import draw, text_tables
    from query_mutator.reports.runs import load_run
    from query_mutator.reports.sweep_table import summary_table
    from query_mutator.reports.tables import rendered

    by_label: dict[str, Group] = {}
    for one in done:
        name = label(grid, one.combination)
        by_label.setdefault(name, Group(name, [])).runs.append(load_run(folder / one.name))
    groups = list(by_label.values())
    runs = [one for group in groups for one in group.runs]
    comparison = compare(runs, groups, default_tags(runs))
    for kind, suffix in (("json", "json"), ("markdown", "md"), ("csv", "csv")):
        text = rendered(comparison, kind)
        (folder / f"comparison.{suffix}").write_text(text, encoding="utf-8", errors="replace")
    found = surface(comparison, grid, by_minute=by_minute)
    print()
    print(summary_table(comparison, found, by_minute=by_minute))
    if found is None:
        print("no score in these runs: no golden middle")
    else:
        print(f"\n{text_tables(found)}\n\n{found.reason}")
        if not by_minute:
            print(
                "speeds are not compared: the runs shared a cache, so some paid for others' calls"
            )
        elif MINUTE not in {view.name for view in found.views}:
            print("speeds are not compared: by then no combination has a score of all its seeds")
        print(f"picture: {draw(found, folder / 'sweep.png')}")
    print(f"every metric: {folder / 'comparison.md'} (and .json, .csv)")


def _in_words(grid: Sequence[Dimension], args: argparse.Namespace) -> str:
    sizes = " × ".join(f"{len(dimension.values)} {dimension.name}" for dimension in grid)
    many = args.seeds
    for dimension in grid:
        many *= len(dimension.values)
    return f"{sizes} × {counted(args.seeds, 'seed')} = {counted(many, 'run')}"


def _default_folder(args: argparse.Namespace) -> Path:
    """The same for the same command, so that it goes on where it was interrupted."""
    content = json.dumps([sorted(args.grid), args.flags, args.share_cache])
    return Path("runs") / f"sweep_{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def _check_cache_flags(flags: Sequence[str], *, share_cache: bool) -> None:
    if not share_cache and any(word.partition("=")[0] == "--cache" for word in flags):
        raise UserError(
            "--cache would let a run find the answers that another has paid for: add "
            "--share-cache before --, and speeds are not compared"
        )
