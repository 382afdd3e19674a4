"""`query-mutator analyze`: runs compared, metric by metric."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from query_mutator.base.errors import UserError, refused
from query_mutator.reports.tables import FORMATS


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The command line of `analyze`."""
    add = parser.add_argument
    add("runs", nargs="*", metavar="RUN", help="directories of runs; the first is the baseline")
    add("--logdir", metavar="DIR", help="compare all runs in this directory too")
    add("--metrics", nargs="+", metavar="TAG", help="tags to compare (default: those that matter)")
    add(
        "--threshold", action="append", default=[], metavar="TAG=VALUE",
        help="tell where each run first reached this value (repeatable)",
    )  # fmt: skip
    add(
        "--group", action="append", default=[], metavar="NAME=RUN,RUN",
        help="judge these together, as seeds of one kind (repeatable; runs of ours that differ "
        "only by seed are grouped by themselves)",
    )  # fmt: skip
    add("--format", choices=FORMATS, default="table", help="how it is written (default table)")
    add("--output", metavar="FILE", help="write it there, not to the terminal")


def run(args: argparse.Namespace) -> int:
    """Compares the runs that the flags name."""
    from query_mutator.base.terminal import show_warnings
    from query_mutator.reports.comparison import Goal, compare, default_tags
    from query_mutator.reports.groups import group_runs
    from query_mutator.reports.runs import check_tags, load_runs, named_runs
    from query_mutator.reports.tables import rendered
    from query_mutator.runs.metrics import better_of

    show_warnings()
    runs = load_runs(named_runs(args.runs, args.logdir))
    tags = list(dict.fromkeys(args.metrics or default_tags(runs)))
    if not tags:
        raise UserError(f"{runs[0].path} has no scalar in its event files: nothing to compare")
    goals = []
    for text in args.threshold:
        tag, found, value = text.rpartition("=")
        better = {">": "higher", "<": "lower"}.get(tag[-1:], "")
        tag = tag[:-1] if better else tag
        limit = _number(value)
        if not found or not tag or limit is None:
            raise UserError(f"--threshold must be TAG=VALUE, not {text!r}")
        if not (better := better or better_of(tag)):
            check_tags([tag], runs)
            raise UserError(
                f"which way is better for {tag} is not known: write --threshold "
                f"'{tag}>={value}' or '{tag}<={value}'"
            )
        goals.append(Goal(tag, limit, better))
    tags = list(dict.fromkeys([*tags, *(goal.tag for goal in goals)]))
    check_tags(tags, runs)
    text = rendered(compare(runs, group_runs(runs, args.group), tags, goals), args.format)
    if args.output:
        with refused(f"cannot write {args.output}"):
            # The name of a directory need not be text.
            Path(args.output).write_text(text, encoding="utf-8", errors="replace")
        print(f"written: {args.output}")
    else:
        print(text, end="")
    return 0


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
