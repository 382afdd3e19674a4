"""A run, or several, as one page to look at."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from command_line import printable
from errors import UserError

REPORT = "report.html"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `python -m experiments report`."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="directory of a run")
    parser.add_argument("--logdir", metavar="DIR", help="report all runs in this directory too")
    parser.add_argument("-o", "--output", default=REPORT, help="the page (default: %(default)s)")
    parser.add_argument("--png", metavar="DIR", help="draw the figures as PNG files there, too")


def run(args: argparse.Namespace) -> int:
    """Writes the page."""
    from command_line import show_warnings
    from experiments.runs import named_runs

    show_warnings()
    runs = named_runs(args.runs, args.logdir)
    print(f"report: {write_report(runs, args.output, png=args.png)}")
    return 0


def write_report(
    runs: Sequence[str | Path], output: str | Path, *, png: str | Path | None = None
) -> Path:
    """Writes the report of some runs, whole or not at all; returns its path."""
    from experiments.report.findings import read
    from experiments.report.page import page
    from experiments.runs import load_runs

    materials = [read(run) for run in load_runs(runs)]
    text = page(materials).encode("utf-8", "replace")
    path = Path(output)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(text)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    if png is not None:
        from experiments.report.png import draw_all

        draw_all(materials, Path(png))
    return path


def report_finished(run: Path) -> None:
    """Writes the report of a run that has ended; one that cannot be made is told, and no more."""
    try:
        print(printable(f"report: {write_report([run], run / REPORT)}"))
    except UserError as error:
        print(printable(f"no report: {error}"))


def refresh_report(run: Path) -> None:
    """Writes the report of a run again, where it has one: it shows the last evaluation."""
    if (run / REPORT).exists():
        report_finished(run)
