"""Rows of text laid out as a table, for the terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.base.terminal import printable

Rows = Sequence[Sequence[str]]


def layout(rows: Rows, *, left: int = 1, indent: str = "", rule: bool = False) -> str:
    """Rows below each other, all columns but the first ones flush right; a rule below the head.

    >>> print(layout([["bucket", "n"], ["1 to 8", "12"], ["all", "120"]]))
    bucket    n
    1 to 8   12
    all     120
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    if rule:
        lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def as_markdown(rows: Rows, *, left: int = 1) -> str:
    """The same as Markdown; the first row is the head."""
    head, *rest = ([printable(cell) for cell in row] for row in rows)
    rest = [[cell.replace("|", "\\|") for cell in row] for row in rest]
    line = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, line, *rest))
