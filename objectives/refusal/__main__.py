"""Measures the refusal detector on labelled answers.

`python -m objectives.refusal FILE` reads JSONL with `question`, `answer`, `label` (`refusal` or
`answer`) and `kind`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from command_line import OneLineParser, exit_code, printable
from errors import UserError
from objectives.refusal.detector import find_refusal

DEFAULT_FILE = Path("data/refusals.jsonl")
SHOWN_CHARACTERS = 100


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(prog="python -m objectives.refusal", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE, metavar="FILE")
    parser.add_argument("--show", action="store_true", help="print the answers it gets wrong")
    return parser


def read_labelled(file: Path) -> list[dict[str, Any]]:
    """The rows of a labelled file; raises `UserError` naming the first line that is none."""
    rows = []
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            known = row["label"] in ("refusal", "answer") and isinstance(row["answer"], str)
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise UserError(f"{file}, line {number}: needs answer and label (refusal or answer)")
        rows.append(row)
    return rows


def report(rows: Sequence[dict[str, Any]], *, show: bool = False) -> str:
    """Precision and recall with their counts, overall and by kind."""
    counts: Counter[tuple[str, bool]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    wrong = []
    for row in rows:
        found = find_refusal(row["answer"], str(row.get("question", "")))
        refused = bool(found.kind)
        counts[row["label"], refused] += 1
        group = (row["label"], str(row.get("kind", "")))
        total[group] += 1
        right[group] += refused == (row["label"] == "refusal")
        if refused != (row["label"] == "refusal"):
            by = f" by '{found.phrase}'" if refused else ""
            wrong.append(f"taken for {found.kind or 'an answer'}{by}: {row['answer']}")
    hits, false_alarms = counts["refusal", True], counts["answer", True]
    lines = [
        f"precision {_share(hits, hits + false_alarms)}",
        f"recall    {_share(hits, hits + counts['refusal', False])}",
    ]
    lines += [f"{label}/{kind}: {_share(right[label, kind], n)} right"
              for (label, kind), n in sorted(total.items(), reverse=True)]  # fmt: skip
    if show:
        lines += [printable(text)[:SHOWN_CHARACTERS] for text in wrong]
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part} of {whole})" if whole else f"- ({part} of {whole})"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""

    def command() -> int:
        args = build_parser().parse_args(argv)
        print(report(read_labelled(args.file), show=args.show))
        return 0

    return exit_code(command)


if __name__ == "__main__":
    raise SystemExit(main())
