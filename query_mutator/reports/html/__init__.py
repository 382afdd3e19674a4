"""A run, or several, as one page to look at."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from query_mutator.base.errors import UserError, refused
from query_mutator.base.terminal import command_line, printable

if TYPE_CHECKING:
    from query_mutator.reports.runs import Run

logger = logging.getLogger(__name__)
REPORT = "report.html"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `query-mutator report`."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="directory of a run")
    parser.add_argument("--logdir", metavar="DIR", help="report all runs in this directory too")
    parser.add_argument(
        "-o", "--output", help=f"the page (default: {REPORT}, of one run in its directory)"
    )
    parser.add_argument("--png", metavar="DIR", help="draw the figures as PNG files there, too")


def run(args: argparse.Namespace) -> int:
    """Writes the page."""
    from query_mutator.base.terminal import show_warnings
    from query_mutator.reports.runs import named_runs

    show_warnings()
    runs = named_runs(args.runs, args.logdir)
    output = args.output
    if output is None:
        output = runs[0] / REPORT if len(runs) == 1 else Path(REPORT)
    print(f"report: {write_report(runs, output, png=args.png)}")
    return 0


def write_report(
    runs: Sequence[str | Path], output: str | Path, *, png: str | Path | None = None
) -> Path:
    """Writes the report of some runs, whole or not at all; returns its path."""
    from query_mutator.base.files import write_atomically
    from query_mutator.reports.html.findings import read
    from query_mutator.reports.html.page import page

    materials = [read(run) for run in _ours(runs)]
    text = page(materials).encode("utf-8", "replace")
    path = Path(output)
    with refused(f"cannot write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda file: file.write(text))
    if png is not None:
        from query_mutator.reports.html.png import draw_all

        draw_all(materials, Path(png))
    return path


def _ours(paths: Sequence[str | Path]) -> list[Run]:
    """The runs that have a log of transitions; others are left out with a warning."""
    from query_mutator.reports.runs import load_runs
    from query_mutator.runs.directory import TRANSITIONS

    ours = []
    for run in load_runs(paths):
        if (run.path / TRANSITIONS).exists():
            ours.append(run)
        else:
            logger.warning("%s is left out: it has no %s", run.path, TRANSITIONS)
    if not ours:
        raise UserError(
            f"report needs a run of `{command_line('train')}`, which has made steps; "
            "query-mutator compare reads those of other programs"
        )
    return ours


def report_finished(run: Path) -> None:
    """Writes the report of a run that has ended; one that cannot be made is told, and no more."""
    try:
        print(printable(f"report: {write_report([run], run / REPORT)}"))
    except UserError as error:
        print(printable(f"no report: {error}"))
    except Exception as error:  # a bug in a picture takes nothing from what was learned
        logger.debug("the report of %s", run, exc_info=True)
        where = f"query-mutator report {run} shows where"
        print(printable(f"no report: {type(error).__name__}: {error}; {where}"))


def refresh_report(run: Path) -> None:
    """Writes the report of a run again, where it has one: it shows the last evaluation."""
    if (run / REPORT).exists():
        report_finished(run)
