"""The figures of a report as PNG files, for slides and documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from errors import UserError
from experiments.report import findings, several
from experiments.report.figures import Curves, Distribution, Figure, Forest, HeatMap, Stack
from experiments.report.findings import Material
from experiments.report.markup import name

COLOURS = ("#2a78d6", "#d9591f", "#1a9a6c", "#b87d00", "#4a3aa7", "#c94b86", "#0f7f8c", "#8a8780")
STYLES = ("-", "--", ":", "-.", (0, (9, 3)), (0, (4, 2)), (0, (1, 2)), "-")
DPI = 150


def draw_all(materials: Sequence[Material], directory: Path) -> list[Path]:
    """Draws every figure there is, as RUN-FIGURE.png; returns the files."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {directory}: {error.strerror}") from error
    figures: list[tuple[str, Figure | None]] = []
    if len(materials) > 1:
        found = several.together(materials)
        figures += [("all", several.curves(found, heldout=heldout)) for heldout in (False, True)]
    for material in materials:
        drawn: list[Figure | None] = [
            findings.learning(material),
            findings.operators_used(material.digest),
            findings.heat_map(material.digest),
            findings.scores(material.digest),
            findings.time_spent(material),
        ]
        if material.evaluation is not None:
            drawn += [findings.leads(material.evaluation), findings.gains(material.evaluation)]
        figures += [(material.run.name, figure) for figure in drawn]
    files = []
    for run, figure in figures:
        if figure is not None:
            files.append(directory / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', run)}-{figure.key}.png")
            draw_png(figure, files[-1])
    return files


def draw_png(figure: Figure, path: Path) -> None:
    """Draws one figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"text.parse_math": False, "font.size": 10}):
        drawn, axes = pyplot.subplots(figsize=_size(figure), layout="constrained")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(name(figure.says, 110), loc="left", fontsize=11, wrap=True)
        draw: dict[type, Callable[[Any, Any], None]] = {
            Curves: _curves,
            Stack: _stack,
            Distribution: _distribution,
            HeatMap: _heat_map,
            Forest: _forest,
        }
        draw[type(figure)](axes, figure)
        drawn.savefig(path, dpi=DPI)
        pyplot.close(drawn)


def _size(figure: Figure) -> tuple[float, float]:
    if isinstance(figure, Forest):
        return 8, 1.4 + 0.28 * len(figure.rows)
    if isinstance(figure, HeatMap):
        return 2.5 + 0.95 * len(figure.operators), 1.5 + 0.36 * len(figure.categories)
    return 9, 4


def _curves(axes: Any, figure: Curves) -> None:
    axes.axhline(0, color="0.55", linewidth=1)
    for number, line in enumerate(figure.lines):
        colour = COLOURS[number]
        if line.low is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        for x, y in line.each:
            axes.plot(x, y, color=colour, linewidth=0.8, alpha=0.5)
        style = {"linestyle": "--", "marker": "s"} if line.sparse else {"linestyle": STYLES[number]}
        axes.plot(line.x, line.y, color=colour, linewidth=2, label=name(line.name, 30), **style)
    axes.set_ylim(*figure.range)
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)


def _stack(axes: Any, figure: Stack) -> None:
    values = [layer for _, layer in figure.layers]
    axes.stackplot(figure.x, values, colors=COLOURS, edgecolor="white", linewidth=0.8)
    floor = 0.0
    for label, layer in figure.layers:
        if layer[-1] > 0.02:
            at = (1.01, floor + float(layer[-1]) / 2)
            shown = f"{layer[-1]:.0%} {name(label, 24)}"
            axes.annotate(shown, at, xycoords=("axes fraction", "data"), va="center", fontsize=9)
        floor += float(layer[-1])
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label, ylim=(0, 1))
    axes.margins(x=0)


def _distribution(axes: Any, figure: Distribution) -> None:
    width = np.diff(figure.edges) * 0.42
    axes.bar(
        figure.edges[:-1] + width * 0.2, figure.before, width, align="edge",
        facecolor="white", edgecolor="0.4", linestyle="--", label=figure.names[0],
    )  # fmt: skip
    axes.bar(
        figure.edges[:-1] + width * 1.2, figure.after, width, align="edge",
        color=COLOURS[0], label=figure.names[1],
    )  # fmt: skip
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    axes.legend(frameon=False)


def _heat_map(axes: Any, figure: HeatMap) -> None:
    rows, columns = figure.categories, figure.operators
    gains = np.full((len(rows), len(columns)), np.nan)
    for (operator, category), cell in figure.cells.items():
        if operator in columns and category in rows:
            place = rows.index(category), columns.index(operator)
            gains[place] = cell.gain
            text = f"{cell.gain:+.2f}\n×{cell.count}"
            axes.annotate(text, place[::-1], ha="center", va="center", fontsize=7)
    deepest = max(0.05, float(np.nanmax(np.abs(gains))) * 1.4)
    axes.imshow(gains, cmap="RdBu", vmin=-deepest, vmax=deepest, aspect="auto")
    axes.set_xticks(range(len(columns)), [name(column, 20) for column in columns], fontsize=8)
    axes.set_yticks(range(len(rows)), [name(row, 24) for row in rows], fontsize=8)


def _forest(axes: Any, figure: Forest) -> None:
    for place, row in enumerate(figure.rows):
        if row.low is not None:
            axes.plot([row.low, row.high], [place, place], color=COLOURS[0], linewidth=2)
        axes.plot([row.mean], [place], "o", color=COLOURS[0], markersize=5)
    axes.axvline(0, color="0.4", linewidth=1, linestyle="--")
    axes.set_yticks(range(len(figure.rows)), [name(row.name, 40) for row in figure.rows])
    axes.set_ylim(len(figure.rows) - 0.4, -0.6)
    axes.set_xlim(*figure.range)
    axes.set_xlabel("difference in score, with 95 % intervals")
    axes.grid(axis="x", alpha=0.25)
