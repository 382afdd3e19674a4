"""The parts of the page, one function for each."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.base.terminal import counted
from query_mutator.reports.html import svg
from query_mutator.reports.html.digest import RIGHT, Example, finite
from query_mutator.reports.html.figures import (
    ALL,
    FEWEST_SHOWN,
    Curves,
    Distribution,
    Forest,
    HeatMap,
    Interval,
    Name,
    Stack,
)
from query_mutator.reports.html.findings import Material
from query_mutator.reports.html.markup import (
    LONGEST_NAME,
    Markup,
    breakable,
    element,
    join,
    name,
    plain,
)
from query_mutator.reports.html.scales import signed
from query_mutator.reports.html.words import marked


def card(kicker: str, says: str, *content: str | None, key: str) -> Markup:
    """One finding: what it is about, what one sees, and what shows it."""
    return element(
        "section",
        element("p", kicker, class_="kicker"),
        element("h2", says, id=f"{key}-title"),
        *content,
        class_="card",
        id=key,
        aria_labelledby=f"{key}-title",
    )


def note(*text: str) -> Markup:
    return element("p", *text, class_="note")


def plotted(figure: Curves | Stack | Distribution) -> Markup:
    """A picture, with its figures in a table that opens."""
    head, rows = figure.table()
    return join(
        svg.draw(figure),
        element(
            "details",
            element("summary", "The figures as a table"),
            table(head, rows, caption=f"{figure.y_label} by {figure.x_label}"),
            class_="data",
        ),
    )


def scores_key() -> Markup:
    """Which bars are which."""
    items = []
    for kind, label in (("before", "question unchanged"), ("after", "as the policy left it")):
        box = element("rect", x="1", y="1", width="14", height="10", class_=f"bar-{kind}")
        swatch = element("svg", box, viewBox="0 0 16 12", aria_hidden="true")
        items.append(element("li", swatch, label))
    return element("ul", *items, class_="key")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    caption: str,
    kind: str = "",
    titled: bool = True,
) -> Markup:
    """A table of texts."""
    return _scrolling(caption, head, [_row(row) for row in rows], titled=titled, kind=kind or None)


def _scrolling(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Markup],
    *feet: Markup,
    titled: bool = False,
    kind: str | None,
    key: str | None = None,
) -> Markup:
    """A table that scrolls within its own box, by keyboard too."""
    shown = element(
        "table",
        element("caption", caption, class_=None if titled else "hidden"),
        element("thead", element("tr", *(element("th", cell, scope="col") for cell in head))),
        element("tbody", *rows),
        *(element("tfoot", foot) for foot in feet),
        class_=kind,
        data_plot=key,
    )
    return element("div", shown, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _row(cells: Sequence[str]) -> Markup:
    first, *rest = cells
    return element("tr", _row_name(first), *(element("td", cell) for cell in rest))


def _row_name(text: str) -> Markup:
    """The first cell of a row; a span bounds its width, which on a cell itself is undefined."""
    return element("th", element("span", breakable(text)), scope="row")


def heat_table(figure: HeatMap) -> Markup:
    """The heat map as a table: it is its own data table, and its numbers do not need colour."""
    operators = (*figure.operators, ALL)
    names = [_named(operator, "all rewrites", 24) for operator in operators]
    heads = [breakable(head) for head in ("kind of question", *names)]
    rows = []
    for category in (*figure.categories, ALL):
        label = _named(category, "all kinds")
        cells = [_heat_cell(figure, operator, category) for operator in operators]
        kind = "sum" if category is ALL else None
        rows.append(element("tr", _row_name(label), *cells, class_=kind))
    key = note(
        "In a cell: the mean gain in score (the reward); the share of answers that became right "
        f"(▲) and wrong (▼), right being a score of at least {RIGHT:g}; how often it was used. "
        f"Blue helps, red hurts; in italics and pale, fewer than {FEWEST_SHOWN} uses."
    )
    caption = "Gain of every operator for every kind of question"
    return join(key, _scrolling(caption, heads, rows, kind="heat", key=figure.key))


def _named(label: Name, all_of_them: str, limit: int = LONGEST_NAME) -> str:
    return all_of_them if label is None else name(label, limit)


def _heat_cell(figure: HeatMap, operator: Name, category: Name) -> Markup:
    cell = figure.cells.get((operator, category))
    if cell is None:
        unused = element("span", "not used", class_="hidden")
        return element("td", element("span", "·", aria_hidden="true"), unused, class_="none")
    level = figure.shade(cell)
    kinds = [f"{'up' if level > 0 else 'down'}-{abs(level)}"] if level else []
    kinds += ["few"] if cell.few else []
    kinds += ["sum"] if operator is ALL else []
    return element(
        "td",
        element("b", signed(cell.gain, 2)),
        element("small", cell.flips),
        element("small", f"{cell.count:,} ×"),
        class_=" ".join(kinds) or None,
    )


def forest_table(figure: Forest, *, break_after: int | None = None) -> Markup:
    """Differences as a table with a picture of each interval beside its figures."""
    first, *others = figure.headings
    hidden = element("span", "picture", class_="hidden")
    head = [first, "difference, 95\u00a0%\u00a0interval", hidden, *others]
    rows = []
    for number, row in enumerate(figure.rows):
        cells = [_row_name(row.name)]
        cells.append(element("td", with_bounds(signed(row.mean), ends_told(row))))
        cells.append(element("td", svg.strip(row, figure), class_="strips"))
        cells += [element("td", cell) for cell in row.about]
        rows.append(element("tr", *cells, class_="break" if number == break_after else None))
    axis = element("td", svg.strip_axis(figure), class_="strips")
    feet = [element("td"), element("td"), axis, *(element("td") for _ in others)]
    foot = element("tr", *feet, aria_hidden="true")
    shown = _scrolling(figure.says, head, rows, foot, kind="wide", key=figure.key)
    return join(element("h3", figure.says), shown)


def with_bounds(value: str, bounds: str) -> Markup:
    """A value with what bounds it, beside it or, where that is too wide, below it."""
    return join(value, " ", element("small", bounds, class_="bounds"))


def ends_told(row: Interval) -> str:
    """The interval in words."""
    if row.low is None or row.high is None:
        return "too few to tell"
    return f"{signed(row.low)} to {signed(row.high)}"


def example(shown: Example) -> Markup:
    """One rewrite: what was asked and answered before, beside what was after."""
    asked, rewritten = marked(shown.query, shown.rewritten_query)
    helped = shown.reward > 0
    title = element(
        "h4",
        element("span", signed(shown.reward, 2), class_=f"gain {'helped' if helped else 'hurt'}"),
        f"{name(shown.operator)} on {name(shown.category) or 'a question'}: "
        f"score {shown.previous_score:.2f} before, {shown.score:.2f} after",
    )
    return element(
        "article",
        title,
        element(
            "div",
            _side("asked", asked, "answer", shown.previous_answer),
            _side("rewritten", rewritten, "answer", shown.answer),
            class_="sides",
        ),
        class_="example",
    )


def _side(heading: str, question: Markup, answer_heading: str, answer: str) -> Markup:
    return element(
        "dl",
        element("dt", heading),
        element("dd", question or "(nothing)", dir="auto"),
        element("dt", answer_heading),
        element("dd", plain(answer).strip() or "(nothing)", class_="answer", dir="auto"),
    )


def tiles(figures: Sequence[tuple[str, str, str]]) -> Markup:
    """Key figures: label, value, and what to know about it."""
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", label),
                element("dd", value, element("small", more) if more else None),
            )
            for label, value, more in figures
        ),
        class_="tiles",
    )


def run_tiles(material: Material) -> Markup:
    """The key figures of one run."""
    digest, summary = material.digest, material.run.summary or {}
    figures = []
    first, last = digest.tenths() if digest.updates else (None, None)
    if first and last and first.episodes and last.episodes:
        figures.append(("return in training", signed(last.mean), f"{signed(first.mean)} at first"))
    heldout = finite(summary.get("heldout_gain"))
    if heldout is not None:
        figures.append(("on held-out questions", signed(heldout), "in the last sample"))
    updates = counted(len(digest.updates), "update")
    figures.append(("environment steps", f"{digest.transitions:,}", updates))
    if (seconds := finite(summary.get("wall_time_s"))) is not None:
        speed = f"{digest.transitions / max(seconds, 1e-9):.1f} steps a second"
        figures.append(("time", duration(seconds), speed))
    if (calls := finite(summary.get("model_calls"))) is not None:
        hits = finite(summary.get("cache_hits")) or 0.0
        without = f"{hits:,.0f} answered without a call"
        figures.append(("model calls", f"{calls:,.0f}", without))
        failed = finite(summary.get("failed_calls")) or 0.0
        masked = f"{counted(digest.failed, 'step')} not learned from"
        figures.append(("failed calls", f"{failed:,.0f}", masked))
    return tiles(figures)


def duration(seconds: float) -> str:
    """Seconds as a person would say them.

    >>> duration(42), duration(754), duration(9000)
    ('42 s', '12 min 34 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
