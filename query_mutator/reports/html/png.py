"""The figures of a report as PNG files, for slides and documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from query_mutator.base import pictures
from query_mutator.base.errors import refused
from query_mutator.reports.html import findings, several
from query_mutator.reports.html.evaluation import gains, gains_by_style, leads, parts_apart
from query_mutator.reports.html.figures import (
    ALL,
    FEWEST_SHOWN,
    SHADES,
    Curves,
    Distribution,
    Figure,
    Forest,
    HeatMap,
    Name,
    Stack,
)
from query_mutator.reports.html.findings import Material
from query_mutator.reports.html.gap import closing_forest
from query_mutator.reports.html.markup import name
from query_mutator.reports.html.scales import signed

STYLES = ("-", "--", ":", "-.", (0, (9, 3)), (0, (4, 2)), (0, (1, 2)), "-")
LONGEST_RUN = 50


@cache
def colour(of: str) -> str:
    """A colour of the page when it is light, by its name in the style sheet."""
    style = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    light, _, _ = style.partition("@media")
    return dict(re.findall(r"--([\w-]+): (#\w+);", light))[of]


def draw_all(materials: Sequence[Material], directory: Path) -> list[Path]:
    """Draws every figure there is, as RUN-FIGURE.png, several runs numbered; returns the files."""
    with refused(f"cannot write to {directory}"):
        directory.mkdir(parents=True, exist_ok=True)
    figures: list[tuple[str, Figure | None]] = []
    if len(materials) > 1:
        found = several.together(materials)
        figures += [("all", several.curves(found, heldout=heldout)) for heldout in (False, True)]
    for number, material in enumerate(materials, 1):
        drawn: list[Figure | None] = [
            findings.learning(material),
            findings.operators_used(material.digest),
            findings.heat_map(material.digest),
            findings.scores(material.digest),
            findings.time_spent(material),
        ]
        if material.evaluation is not None:
            makers = (leads, parts_apart, gains, closing_forest)
            drawn += [make(material.evaluation) for make in makers]
            drawn += gains_by_style(material.evaluation)
        # No two runs are the same file, whatever is left of their names.
        run = re.sub(r"[^\w.-]+", "_", material.run.name)[:LONGEST_RUN]
        run = f"{number}-{run}" if len(materials) > 1 else run
        figures += [(run, figure) for figure in drawn]
    files = []
    for run, figure in figures:
        if figure is not None:
            files.append(directory / f"{run}-{figure.key}.png")
            draw_png(figure, files[-1])
    return files


def draw_png(figure: Figure, path: Path) -> None:
    """Draws one figure."""
    with pictures.figure(path, _size(figure)) as (_, [axes]):
        axes.set_title(name(figure.says, 110), loc="left", fontsize=11, wrap=True)
        draw: dict[type, Callable[[Any, Any], None]] = {
            Curves: _curves,
            Stack: _stack,
            Distribution: _distribution,
            HeatMap: _heat_map,
            Forest: _forest,
        }
        draw[type(figure)](axes, figure)


def _size(figure: Figure) -> tuple[float, float]:
    if isinstance(figure, Forest):
        return 8, 1.4 + 0.28 * len(figure.rows)
    if isinstance(figure, HeatMap):
        return 3.3 + 0.95 * len(figure.operators), 2.1 + 0.5 * len(figure.categories)
    return 9, 4


def _curves(axes: Any, figure: Curves) -> None:
    axes.axhline(0, color="0.55", linewidth=1)
    for number, line in enumerate(figure.lines):
        ink = colour(f"s{number}")
        if line.low is not None:
            axes.fill_between(line.x, line.low, line.high, color=ink, alpha=0.2, linewidth=0)
        for x, y in line.each:
            axes.plot(x, y, color=ink, linewidth=0.8, alpha=0.5)
        style = {"linestyle": "--", "marker": "s"} if line.sparse else {"linestyle": STYLES[number]}
        axes.plot(line.x, line.y, color=ink, linewidth=2, label=name(line.name, 30), **style)
    axes.set_ylim(*figure.range)
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)


def _stack(axes: Any, figure: Stack) -> None:
    values = [layer for _, layer in figure.layers]
    inks = [colour(f"s{number}") for number in range(len(values))]
    axes.stackplot(figure.x, values, colors=inks, edgecolor="white", linewidth=0.8)
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
        color=colour("s0"), label=figure.names[1],
    )  # fmt: skip
    axes.set(xlabel=figure.x_label, ylabel=figure.y_label)
    axes.legend(frameon=False)


def _heat_map(axes: Any, figure: HeatMap) -> None:
    from matplotlib.colors import to_rgb

    rows, columns = (*figure.categories, ALL), (*figure.operators, ALL)
    shades = np.ones((len(rows), len(columns), 3))
    for down, category in enumerate(rows):
        for across, operator in enumerate(columns):
            cell = figure.cells.get((operator, category))
            if cell is None:
                continue
            level = figure.shade(cell)
            deep = f"{'up' if level > 0 else 'down'}-{abs(level)}" if level else "same"
            shades[down, across] = to_rgb(colour(deep))
            ink = colour("on-deep" if abs(level) == SHADES else "ink")
            gain = {"fontsize": 9, "fontweight": "normal" if cell.few else "bold"}
            gain["fontstyle"] = "italic" if cell.few else "normal"
            middle = {"ha": "center", "color": ink}
            axes.text(across, down - 0.05, signed(cell.gain, 2), va="bottom", **middle, **gain)
            about = f"{cell.flips}\n{cell.count:,} ×"
            axes.text(across, down, about, va="top", fontsize=6.5, linespacing=1.1, **middle)
    axes.imshow(shades, aspect="auto")
    axes.set_xticks(range(len(columns)), [_short(column, "all rewrites") for column in columns])
    axes.set_yticks(range(len(rows)), [_short(row, "all kinds") for row in rows])
    axes.set_xticks(np.arange(len(columns)) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="both", length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    key = "mean gain in score; share of answers that became right ▲ and wrong ▼; uses. "
    axes.set_xlabel(f"{key}Pale and in italics: fewer than {FEWEST_SHOWN} uses.", fontsize=8)


def _short(label: Name, all_of_them: str) -> str:
    return all_of_them if label is None else name(label, 20)


def _forest(axes: Any, figure: Forest) -> None:
    for place, row in enumerate(figure.rows):
        kind = {"better": "good", "worse": "bad", "unsure": "soft"}[row.certain]
        if row.low is not None:
            axes.plot([row.low, row.high], [place, place], color=colour(kind), linewidth=2)
        axes.plot([row.mean], [place], "o", color=colour(kind), markersize=5)
    axes.axvline(0, color="0.4", linewidth=1, linestyle="--")
    axes.set_yticks(range(len(figure.rows)), [name(row.name, 40) for row in figure.rows])
    axes.set_ylim(len(figure.rows) - 0.4, -0.6)
    axes.set_xlim(*figure.range)
    axes.set_xlabel("difference in score, with 95 % intervals")
    axes.grid(axis="x", alpha=0.25)
