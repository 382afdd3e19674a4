"""Figures as inline SVG: colours come from the page's style sheet, so light and dark both fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from query_mutator.reports.html.figures import (
    Curves,
    Distribution,
    Forest,
    Interval,
    Line,
    Numbers,
    Stack,
)
from query_mutator.reports.html.markup import Markup, element, join, name
from query_mutator.reports.html.scales import Scale, round_ticks, signed, spread, tick_label

SIZES = {"narrow": (360, 270), "middle": (640, 320), "broad": (1120, 380)}
"""The same picture for columns of different width: text keeps its size."""
LETTER = 7.6
"""The width of a letter, as wide as it is in any of the fonts."""
LINE_HEIGHT = 15
STRIP = (160, 24)
"""Its lines and its text keep their size, however wide the style sheet makes it."""


@dataclass(frozen=True)
class _Frame:
    """The place of a plot within its picture."""

    width: int
    height: int
    right: float
    left: float = 44
    top: float = 30
    bottom: float = 40

    @property
    def x(self) -> tuple[float, float]:
        return self.left, self.width - self.right

    @property
    def y(self) -> tuple[float, float]:
        return self.height - self.bottom, self.top


def draw(figure: Curves | Stack | Distribution) -> Markup:
    """The figure in every size; the style sheet shows the one that fits."""
    pictures = [_draw(figure, size, *extent) for size, extent in SIZES.items()]
    return element("div", *pictures, class_="plot", data_plot=figure.key)


def _draw(figure: Curves | Stack | Distribution, size: str, width: int, height: int) -> Markup:
    if isinstance(figure, Curves):
        content = _curves(figure, width, height)
    elif isinstance(figure, Stack):
        content = _stack(figure, width, height)
    else:
        content = _distribution(figure, width, height)
    return element(
        "svg",
        element("desc", f"{figure.y_label} by {figure.x_label}; the figures are in the table."),
        content,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=figure.says,
        class_=f"size-{size}",
    )


def _curves(figure: Curves, width: int, height: int) -> Markup:
    low, high = figure.range
    ticks = round_ticks(low, high, 5)
    longest_tick = max(len(tick_label(ticks, signs=True)(tick)) for tick in ticks)
    room = _label_room([line.name for line in figure.lines], width)
    frame = _Frame(width, height, room, left=max(44, longest_tick * LETTER + 8))
    steps = [float(step) for line in figure.lines for step in line.x]
    x = Scale(min(0.0, *steps), max(steps), *frame.x)
    y = Scale(low, high, *frame.y)
    parts = [_axes(frame, x, y, figure.x_label, figure.y_label, ticks, signs=True)]
    below = y(0) + 15 if y(0) + 16 < frame.y[0] else y(0) - 5
    zero = {"x": _at(frame.x[1] - 4), "y": _at(below), "class_": "zero-label"}
    parts.append(element("text", figure.zero, **zero))
    bands = [_band(line, x, y, number) for number, line in enumerate(figure.lines)]
    parts += [band for band in bands if band]
    parts += [_line(line, x, y, number) for number, line in enumerate(figure.lines)]
    places = [y(float(line.y[-1])) for line in figure.lines]
    parts.append(_end_labels([line.name for line in figure.lines], places, frame))
    longest = max(figure.lines, key=lambda line: len(line.x))
    parts.append(_tips(longest.x, x, frame, lambda step: _values_at(figure.lines, step)))
    return join(*parts)


def _stack(figure: Stack, width: int, height: int) -> Markup:
    last = [values[-1] for _, values in figure.layers]
    labels = [f"{share:.0%} {layer}" for (layer, _), share in zip(figure.layers, last, strict=True)]
    frame = _Frame(width, height, _label_room(labels, width))
    low = float(figure.x[0]) if len(figure.x) > 1 else 0.0
    x = Scale(low, float(figure.x[-1]), *frame.x)
    y = Scale(0, 1, *frame.y)
    parts: list[Markup] = []
    middles: list[float] = []
    floor = np.zeros(len(figure.x))
    for number, (_, values) in enumerate(figure.layers):
        ceiling = floor + values
        across = figure.x if len(figure.x) > 1 else np.array([low, figure.x[0]])
        up, down = (np.resize(edge, len(across)) for edge in (ceiling, floor))
        there = _points(across, up, x, y)
        back = _points(across[::-1], down[::-1], x, y)
        area = element("path", d=f"M{there}L{back}Z", class_=f"area fill-{number}")
        parts.append(area)
        middles.append(y(float(floor[-1] + values[-1] / 2)))
        floor = ceiling
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes = _axes(frame, x, y, figure.x_label, figure.y_label, ticks, percent=True)

    def shown(step: float) -> str:
        place = int(np.abs(figure.x - step).argmin())
        shares = [f"{layer} {values[place]:.0%}" for layer, values in figure.layers]
        return "\n".join([f"step {step:,.0f}", *reversed(shares)])

    return join(axes, *parts, _end_labels(labels, middles, frame), _tips(figure.x, x, frame, shown))


def _distribution(figure: Distribution, width: int, height: int) -> Markup:
    frame = _Frame(width, height, 16)
    top = max(float(figure.before.max()), float(figure.after.max()), 0.01) * 1.1
    x = Scale(float(figure.edges[0]), float(figure.edges[-1]), *frame.x)
    y = Scale(0, top, *frame.y)
    ticks = round_ticks(0, top, 4)
    parts = [_axes(frame, x, y, figure.x_label, figure.y_label, ticks, percent=True)]
    pairs = zip(figure.edges[:-1], figure.edges[1:], figure.before, figure.after, strict=True)
    for low, high, before, after in pairs:
        start, end = x(float(low)), x(float(high))
        half = (end - start) / 2
        for share, left, kind in (
            (before, start + half * 0.12, "before"),
            (after, start + half, "after"),
        ):
            label = f"{kind}: {share:.1%} of the answers score {low:.2f} to {high:.2f}"
            bar = element(
                "rect",
                element("title", label),
                x=_at(left),
                y=_at(y(float(share))),
                width=_at(half * 0.88),
                height=_at(y(0) - y(float(share))),
                class_=f"bar-{kind}",
            )
            parts.append(bar)
    return join(*parts)


def _axes(
    frame: _Frame,
    x: Scale,
    y: Scale,
    x_label: str,
    y_label: str,
    y_ticks: Sequence[float],
    *,
    percent: bool = False,
    signs: bool = False,
) -> Markup:
    write = (lambda tick: f"{tick:.0%}") if percent else tick_label(y_ticks, signs=signs)
    parts = [element("text", y_label, x="0", y="12", class_="axis-label")]
    for tick in y_ticks:
        kind = "zero" if tick == 0 else "grid"
        parts.append(_straight(frame.x[0], y(tick), frame.x[1], y(tick), kind))
        at = {"x": _at(frame.left - 6), "y": _at(y(tick) + 4)}
        parts.append(element("text", write(tick), **at, class_="tick end"))
    x_ticks = round_ticks(
        x.low, x.high, max(3, int((frame.x[1] - frame.x[0]) / (64 if frame.width < 500 else 90)))
    )
    write_x = tick_label(x_ticks)
    for tick in x_ticks:
        at = {"x": _at(x(tick)), "y": _at(frame.y[0] + 17)}
        parts.append(element("text", write_x(tick), **at, class_="tick mid"))
    at = {"x": _at(frame.x[1]), "y": _at(frame.height - 5)}
    parts.append(element("text", x_label, **at, class_="axis-label end"))
    return element("g", *parts, class_="axes")


def _band(line: Line, x: Scale, y: Scale, number: int) -> Markup | None:
    if line.low is None or line.high is None:
        return None
    known = np.isfinite(line.low) & np.isfinite(line.high)
    if known.sum() < 2:
        return None
    low, high = (np.clip(end[known], y.low, y.high) for end in (line.low, line.high))
    there = _points(line.x[known], high, x, y)
    back = _points(line.x[known][::-1], low[::-1], x, y)
    return element("path", d=f"M{there}L{back}Z", class_=f"band fill-{number}")


def _line(line: Line, x: Scale, y: Scale, number: int) -> Markup:
    kind = f"line stroke-{number}" + (" dashed" if line.sparse else "")
    drawn = element("path", d=f"M{_points(line.x, line.y, x, y)}", class_=kind)
    marks = []
    if line.sparse or len(line.x) == 1:
        for step, value in zip(line.x, line.y, strict=True):
            left, top = x(float(step)) - 4, y(float(value)) - 4
            square = {"x": _at(left), "y": _at(top), "width": "8", "height": "8"}
            marks.append(element("rect", **square, class_=f"mark fill-{number}"))
    thin = [
        element("path", d=f"M{_points(*each, x, y)}", class_=f"thin stroke-{number}")
        for each in line.each
    ]
    return join(*thin, drawn, *marks)


def _end_labels(labels: Sequence[str], places: Sequence[float], frame: _Frame) -> Markup:
    """The name of each line beside its end, with a thin line to it where it had to move."""
    moved = spread(places, LINE_HEIGHT, frame.y[1] + 4, frame.y[0] - 4)
    start, parts = frame.x[1], []
    for number, (label, place, at) in enumerate(zip(labels, places, moved, strict=True)):
        shown = name(label, max(4, int((frame.right - 20) / LETTER)))
        parts.append(_straight(start + 3, place, start + 12, at, f"leader stroke-{number}"))
        text = {"x": _at(start + 15), "y": _at(at + 4), "class_": "series"}
        title = element("title", label) if shown != label else None
        parts.append(element("text", shown, title, **text))
    return element("g", *parts)


def _label_room(labels: Sequence[str], width: int) -> float:
    most = max(len(label) for label in labels)
    return min(most * LETTER + 24, width * 0.42)


def _tips(steps: Numbers, x: Scale, frame: _Frame, text_at: Callable[[float], str]) -> Markup:
    """What the pointer shows at each step, without a script."""
    places = [x(float(step)) for step in steps]
    edges = [(a + b) / 2 for a, b in itertools.pairwise(places)]
    starts, ends = [frame.x[0], *edges], [*edges, frame.x[1]]
    return element(
        "g",
        *(
            element(
                "rect",
                element("title", text_at(float(step))),
                x=_at(start),
                y=_at(frame.y[1]),
                width=_at(max(0.0, end - start)),
                height=_at(frame.y[0] - frame.y[1]),
            )
            for step, start, end in zip(steps, starts, ends, strict=True)
        ),
        class_="tips",
    )


def _values_at(lines: Sequence[Line], step: float) -> str:
    texts = [f"step {step:,.0f}"]
    for line in lines:
        place = int(np.abs(line.x - step).argmin())
        if line.sparse and line.x[place] != step:
            continue
        texts.append(f"{line.name}: {signed(line.y[place])}")
        if ends := line.interval(place):
            texts[-1] += f" [{signed(ends[0])}, {signed(ends[1])}]"
    return "\n".join(texts)


def strip(row: Interval, forest: Forest) -> Markup:
    """One row of a forest plot; its figures stand beside it."""
    width, height = STRIP
    x = Scale(*forest.range, 4, width - 4)
    parts = [_straight(x(0), 0, x(0), height, "zero")]
    kind = row.certain
    if row.low is not None and row.high is not None:
        low, high = max(x(row.low), 1), min(x(row.high), width - 1)
        parts.append(_straight(low, height / 2, high, height / 2, f"reach {kind}"))
    dot = {"cx": _at(x(row.mean)), "cy": _at(height / 2), "r": "3.6"}
    parts.append(element("circle", **dot, class_=f"dot {kind}"))
    return _strip(*parts)


def strip_axis(forest: Forest) -> Markup:
    """The scale under the rows of a forest plot."""
    x = Scale(*forest.range, 4, STRIP[0] - 4)
    ticks = round_ticks(x.low, x.high, 4)
    ticks = round_ticks(x.low, x.high, 3) if len(ticks) > 4 else ticks  # more would touch
    ticks = [tick for tick in ticks if 14 < x(tick) < STRIP[0] - 14]
    write = tick_label(ticks, signs=True)
    return _strip(
        *(element("text", write(t), x=_at(x(t)), y="12", class_="tick mid") for t in ticks)
    )


def _strip(*parts: Markup) -> Markup:
    width, height = STRIP
    box = f"0 0 {width} {height}"
    return element("svg", *parts, viewBox=box, class_="strip", aria_hidden="true")


def _straight(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    ends = {"x1": _at(x1), "y1": _at(y1), "x2": _at(x2), "y2": _at(y2)}
    return element("line", **ends, class_=kind)


def _points(steps: Numbers, values: Numbers, x: Scale, y: Scale) -> str:
    pairs = zip(steps, values, strict=True)
    return "L".join(f"{_at(x(float(step)))} {_at(y(float(value)))}" for step, value in pairs)


def _at(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
