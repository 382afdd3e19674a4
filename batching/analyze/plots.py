"""Pictures of lengths, buckets and ways to batch, as PNG files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from batching.analyze.efficiency import BucketEfficiency
from batching.analyze.histogram import LengthHistogram
from batching.analyze.report import EfficiencyReport
from batching.analyze.suggestion import FIGURES, Suggestion
from batching.analyze.text import percent
from query_mutator.base.errors import refused
from query_mutator.base.pictures import figure
from query_mutator.base.terminal import counted

TOKENS, PADDING, OTHER = "#2a78d6", "#c9d6e6", "#d9591f"
BUCKET_INCHES = 0.75
SHOWN_PERCENTILES = ("p50", "p90", "p99")
NEAR = 0.06
"""Labels that are nearer than this share of the axis are written as one."""


def draw_histogram(histogram: LengthHistogram, path: str | Path) -> Path:
    """Draws how many samples have which length."""
    with _axes(path, (9, 4.2)) as axes:
        _bars(axes, histogram)
        ends = [(histogram.percentiles[name], name) for name in SHOWN_PERCENTILES]
        _marks(axes, ends, OTHER, "--")
        what = f"{counted(histogram.num_samples, 'sample')}, mean {histogram.mean:,.0f} tokens"
        axes.set_title(f"Lengths: {what}", loc="left", fontsize=11, pad=22)
    return Path(path)


def draw_buckets(efficiency: BucketEfficiency, path: str | Path) -> Path:
    """Draws the tokens and the padding of each bucket."""
    with _axes(path, (max(9, BUCKET_INCHES * len(efficiency.buckets)), 4.2)) as axes:
        names = [f"{bucket.low:,}\nto {bucket.high:,}" for bucket in efficiency.buckets]
        tokens = [bucket.num_tokens for bucket in efficiency.buckets]
        places = [bucket.num_samples * bucket.high for bucket in efficiency.buckets]
        padding = [all_ - used for all_, used in zip(places, tokens, strict=True)]
        axes.bar(names, tokens, color=TOKENS, label="tokens")
        bars = axes.bar(names, padding, bottom=tokens, color=PADDING, label="padding")
        labels = [
            percent(bucket.efficiency) if bucket.num_samples else "empty"
            for bucket in efficiency.buckets
        ]
        axes.bar_label(bars, labels, padding=2, fontsize=9)
        axes.tick_params(axis="x", labelsize=9)
        axes.set(xlabel="bucket (tokens)", ylabel="places in all batches")
        _thousands(axes.yaxis)
        axes.margins(y=0.12)
        axes.legend(frameon=False)
        title = f"Buckets: {percent(efficiency.efficiency)} of all places hold tokens"
        axes.set_title(title, loc="left", fontsize=11)
    return Path(path)


def draw_suggestion(suggestion: Suggestion, histogram: LengthHistogram, path: str | Path) -> Path:
    """Draws the lengths with the suggested edges and those in use."""
    what, name = FIGURES[suggestion.goal]
    before, after = (
        percent(getattr(one, name)) for one in (suggestion.in_use, suggestion.suggested)
    )
    with _axes(path, (9, 4.4)) as axes:
        _bars(axes, histogram)
        _edge_lines(axes, suggestion.in_use.spec.edges, f"edges in use ({before})", OTHER, ":")
        _edge_lines(
            axes, suggestion.spec.edges, f"best for {suggestion.goal} ({after})", "0.15", "-"
        )
        axes.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2
        )
        title = f"Edges for {suggestion.goal}: {what} {after}, {before} before"
        axes.set_title(title, loc="left", fontsize=11, pad=26)
    return Path(path)


def draw_report(report: EfficiencyReport, path: str | Path) -> Path:
    """Draws the efficiency of each way to batch."""
    with _axes(path, (9, 1.3 + 0.5 * len(report.ways))) as axes:
        ways = report.ways[::-1]
        names = [_broken(way.name) for way in ways]
        colours = [TOKENS if way is report.best else PADDING for way in ways]
        bars = axes.barh(range(len(ways)), [way.efficiency for way in ways], color=colours)
        labels = [f"{percent(way.efficiency)} · {way.num_batches:,} batches" for way in ways]
        axes.bar_label(bars, labels, padding=4, fontsize=9)
        axes.set_yticks(range(len(ways)), names, fontsize=9)
        axes.set_xlim(0, 1.32)
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "20 %", "40 %", "60 %", "80 %", "100 %"])
        axes.set_xlabel(f"places that hold tokens, {report.token_budget:,} tokens a batch")
        title = f"Best: {report.best.name} ({percent(report.best.efficiency)})"
        axes.set_title(title, loc="left", fontsize=11)
    return Path(path)


@contextmanager
def _axes(path: str | Path, size: tuple[float, float]) -> Iterator[Any]:
    """Axes to draw on; what is on them at the end is written as PNG."""
    with refused(f"cannot write the picture {path}"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with figure(path, size) as (_, [axes]):
            yield axes


def _bars(axes: Any, histogram: LengthHistogram) -> None:
    """The bins as bars; a last one of all greater lengths is as wide as the others."""
    edges = list(histogram.edges)
    step = edges[1] - edges[0]
    has_rest = len(edges) > 2 and edges[-1] - edges[-2] > step
    if has_rest:
        edges[-1] = edges[-2] + step
    bars = axes.bar(
        edges[:-1], histogram.counts, [high - low for low, high in pairwise(edges)],
        align="edge", color=TOKENS, edgecolor="white", linewidth=0.6,
    )  # fmt: skip
    if has_rest:
        bars[-1].set(facecolor=PADDING, hatch="//", edgecolor=TOKENS)
        most = f"{histogram.edges[-2] + 1:,} to\n{histogram.maximum:,}"
        middle = (edges[-1] + edges[-2]) / 2
        axes.annotate(
            most, (middle, histogram.counts[-1]), (0, 3), textcoords="offset points",
            ha="center", va="bottom", fontsize=8, color="0.3",
        )  # fmt: skip
    axes.set_xlim(edges[0], edges[-1] + 0.02 * (edges[-1] - edges[0]))
    axes.set(xlabel="length (tokens)", ylabel="samples")
    _thousands(axes.xaxis)
    _thousands(axes.yaxis)


def _marks(axes: Any, places: list[tuple[int, str]], colour: str, style: str) -> None:
    """Lines at these lengths, with their names above; near ones share a name."""
    low, high = axes.get_xlim()
    groups: list[list[tuple[int, str]]] = []
    for place in sorted(places):
        if groups and place[0] - groups[-1][0][0] < NEAR * (high - low):
            groups[-1].append(place)
        else:
            groups.append([place])
    for group in groups:
        for at, _ in group:
            axes.axvline(at, color=colour, linestyle=style, linewidth=1.2)
        text = ", ".join(f"{name} {at:,}" for at, name in group)
        near_end = group[0][0] > low + 0.85 * (high - low)
        axes.annotate(
            text, (group[0][0], 1.01), xycoords=("data", "axes fraction"), fontsize=9,
            color=colour, ha="right" if near_end else "left" if len(group) > 1 else "center",
        )  # fmt: skip


def _edge_lines(axes: Any, edges: tuple[int, ...], label: str, colour: str, style: str) -> None:
    low, high = axes.get_xlim()
    beyond = sum(edge > high for edge in edges)
    if beyond:
        label += f", {beyond} further right"
    line = {"color": colour, "linestyle": style, "linewidth": 1.6}
    axes.plot([], [], label=label, **line)
    for edge in edges:
        if low <= edge <= high:
            axes.axvline(edge, **line)


def _thousands(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def number(value: float, _: object = None) -> str:
        if axis.get_view_interval()[1] >= 1e6:
            return f"{value / 1e6:,.4g} M" if value else "0"
        return f"{value:,.0f}"

    axis.set_major_locator(MaxNLocator(integer=True, nbins=9))
    axis.set_major_formatter(FuncFormatter(number))


def _broken(name: str, width: int = 28) -> str:
    """A long name on several lines, broken after commas."""
    lines = [""]
    for part in name.replace(",", ",\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)
