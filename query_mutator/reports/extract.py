"""`query-mutator extract`: every point of some metrics, as CSV or JSON lines."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError, refused
from query_mutator.base.stored import without_infinities
from query_mutator.base.terminal import counted, printable
from query_mutator.reports.runs import Run, check_tags, load_runs, named_runs

COLUMNS = ("run", "tag", "step", "minute", "wall_time", "value")
JSON_SUFFIXES = (".jsonl", ".json", ".ndjson")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The command line of `extract`."""
    add = parser.add_argument
    add("--runs", nargs="+", default=[], metavar="RUN", help="directories of runs")
    add("--logdir", metavar="DIR", help="all runs in this directory")
    add("--metrics", nargs="+", default=[], metavar="TAG", help="exact tags")
    add("--output", metavar="FILE", help="a file.csv, or file.jsonl for JSON lines")
    add("--list-tags", action="store_true", help="show which tags the runs have, and no more")


def run(args: argparse.Namespace) -> int:
    """Writes the points that the flags name."""
    from query_mutator.base.terminal import show_warnings

    show_warnings()
    runs = load_runs(named_runs(args.runs, args.logdir))
    if args.list_tags:
        print("\n".join(_tag_lines(runs)))
        return 0
    if not args.metrics or not args.output:
        raise UserError("extract needs --metrics and --output (or --list-tags)")
    suffix = Path(args.output).suffix.lower()
    if suffix != ".csv" and suffix not in JSON_SUFFIXES:
        raise UserError(f"--output must end in .csv or .jsonl, not {args.output!r}")
    tags = list(dict.fromkeys(args.metrics))
    for one in runs:
        check_tags(tags, [one])
    with refused(f"cannot write {args.output}"):
        many = _write(runs, tags, Path(args.output), as_json=suffix != ".csv")
    print(f"written: {args.output}, {counted(many, 'point')}")
    return 0


def points(runs: Sequence[Run], tags: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Every point, as the columns say."""
    for one in runs:
        for tag in tags:
            curve = one.curves[tag]
            columns = (curve.steps, curve.minutes, curve.times, curve.values)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                yield (one.name, tag, *row)


def _write(runs: Sequence[Run], tags: Sequence[str], path: Path, *, as_json: bool) -> int:
    many = 0
    # The name of a directory need not be text: what is none becomes "?".
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not as_json:
            writer.writerow(COLUMNS)
        for row in points(runs, tags):
            many += 1
            if as_json:
                record = dict(zip(COLUMNS, without_infinities(row), strict=True))
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            else:
                writer.writerow(row)
    return many


def _tag_lines(runs: Sequence[Run]) -> list[str]:
    """Each tag, and in how many runs it is and with how many points."""
    lines = []
    for tag in sorted({tag for one in runs for tag in one.curves}):
        found = [len(one.curves[tag]) for one in runs if tag in one.curves]
        where = f"{len(found)} of {counted(len(runs), 'run')}" if len(runs) > 1 else ""
        sizes = counted(sum(found), "point")
        lines.append("  ".join(part for part in (printable(tag), sizes, where) if part))
    return lines
