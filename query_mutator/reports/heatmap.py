"""A grid as a picture and as text: heat maps for two flags, bars for one or more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from query_mutator.base.pictures import figure
from query_mutator.reports.golden import BOTH, Combination, Surface, View
from query_mutator.reports.grid import combinations, label
from query_mutator.reports.tables import table

GOLD = "#d4a017"
COLOURS = "YlGnBu"
DARK = 0.55
"""Shade from which on text is white."""


def draw(surface: Surface, path: Path) -> Path:
    """The views side by side as a PNG, the golden middle marked."""
    two = len(surface.grid) == 2
    many = len(surface.views)
    rows = len(surface.grid[0].values) if two else len(combinations(surface.grid))
    columns = len(surface.grid[1].values) if two else 5
    width = max(4.2, 1.0 * columns + 1.2)
    size = (width * many, (0.8 if two else 0.45) * rows + 2.4)
    with figure(path, size, panels=many) as (drawn, all_axes):
        for axes, view in zip(all_axes, surface.views, strict=True):
            if two:
                _heat(axes, surface, view)
            else:
                _bars(axes, surface, view)
            axes.set_title(view.title, fontweight="bold", pad=22)
            axes.text(
                0.5, 1.03, view.measured, transform=axes.transAxes, ha="center", fontsize=9,
                color="0.35",
            )  # fmt: skip
        drawn.suptitle(
            "No golden middle"
            if surface.golden is None
            else f"Golden middle: {label(surface.grid, surface.golden)}"
        )
        drawn.supxlabel(" · ".join(_legend(surface)), fontsize=9, color="0.35")
    return path


def _legend(surface: Surface) -> list[str]:
    two = len(surface.grid) == 2
    legend = ["colours: from the worst to the best of each panel"] if two else []
    if surface.golden is not None:
        legend.append("★ the golden middle")
    if surface.alike and surface.all_alike:
        legend.append("the seeds cannot tell it from any other for certain")
    elif surface.alike and two:
        legend.append("dashed: the seeds cannot tell it from these")
    if any(len(view.values) < len(combinations(surface.grid)) for view in surface.views):
        legend.append("–: failed, or not all its seeds measured by then")
    return legend


def text_tables(surface: Surface, *, markdown: bool = False) -> str:
    """The views as tables; the golden middle carries a star."""
    parts = []
    for view in surface.views:
        heading = f"{view.title}: {view.measured}"
        parts.append(f"### {heading}" if markdown else heading)
        if len(surface.grid) == 2:
            parts.append(table(_table_of_two(surface, view), markdown=markdown))
        else:
            rows = [[" ".join(dimension.name for dimension in surface.grid), view.name]]
            for combination in combinations(surface.grid):
                rows.append([" ".join(combination), _marked(surface, view, combination)])
            parts.append(table(rows, markdown=markdown))
    return "\n\n".join(parts)


def _table_of_two(surface: Surface, view: View) -> list[list[str]]:
    down, across = surface.grid
    rows = [[f"{down.name} \\ {across.name}", *across.values]]
    for value in down.values:
        cells = [_marked(surface, view, (value, other)) for other in across.values]
        rows.append([value, *cells])
    return rows


def _marked(surface: Surface, view: View, combination: Combination) -> str:
    if combination not in view.values:
        return "–"
    star = "★ " if combination == surface.golden else ""
    return star + _shown(view, combination)


def _shown(view: View, combination: Combination) -> str:
    value = view.values[combination]
    return f"{value:.2f}" if view.name == BOTH else f"{value:+.3f}"


def _heat(axes: Any, surface: Surface, view: View) -> None:
    from matplotlib.patches import Rectangle

    down, across = surface.grid
    table = np.array(
        [[view.values.get((v, w), np.nan) for w in across.values] for v in down.values]
    )
    low, high = np.nanmin(table), np.nanmax(table)
    axes.set_facecolor("0.9")
    axes.imshow(table, cmap=COLOURS, vmin=low, vmax=high if high > low else low + 1, aspect="auto")
    for y, value in enumerate(down.values):
        for x, other in enumerate(across.values):
            combination = (value, other)
            golden = combination == surface.golden
            known = combination in view.values
            text = _shown(view, combination) if known else "–"
            shade = (table[y, x] - low) / (high - low) if known and high > low else 0.0
            axes.text(
                x, y, f"★\n{text}" if golden else text, ha="center", va="center",
                color="white" if shade > DARK else "black",
                fontweight="bold" if golden else "normal",
            )  # fmt: skip
            dashed = combination in surface.alike and not surface.all_alike
            if golden or dashed:
                box = Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, edgecolor=GOLD)
                box.set_linewidth(3.5 if golden else 1.5)
                box.set_linestyle("-" if golden else "--")
                axes.add_patch(box)
    axes.set_xticks(range(len(across.values)), across.values)
    axes.set_yticks(range(len(down.values)), down.values)
    axes.set_xlabel(across.name)
    axes.set_ylabel(down.name)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _bars(axes: Any, surface: Surface, view: View) -> None:
    shown = [c for c in combinations(surface.grid) if c in view.values]
    names = [label(surface.grid, combination) for combination in shown]
    colours = [GOLD if combination == surface.golden else "tab:blue" for combination in shown]
    bars = axes.barh(names, [view.values[c] for c in shown], color=colours)
    axes.bar_label(bars, [_marked(surface, view, c) for c in shown], padding=3, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.25)
    axes.axvline(0, color="0.5", linewidth=1)
