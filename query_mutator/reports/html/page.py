"""The page: one file that opens offline, with nothing active in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from query_mutator.base.terminal import counted
from query_mutator.reports.cautions import cautions, evidence
from query_mutator.reports.comparison import Comparison
from query_mutator.reports.html import findings, several
from query_mutator.reports.html.cards import Named, run_cards
from query_mutator.reports.html.evaluation import another_score
from query_mutator.reports.html.findings import Material
from query_mutator.reports.html.markup import Markup, element, join, name, plain
from query_mutator.reports.html.sections import card, note, plotted, run_tiles, table

MOST_IN_DETAIL = 8
"""Runs that are shown one by one; more would make the page too large to send."""
MOST_WARNINGS = 20
HEADLINES = {
    "helps": "The policy helps",
    "does no harm": "The policy does no harm",
    "does not help": "The policy does not help",
    "cannot tell": "Too few questions to tell whether the policy helps",
}
MADE_BY = (
    "Made by query-mutator report, from the run's own files. No script, nothing is loaded "
    "from elsewhere."
)


def page(materials: Sequence[Material]) -> str:
    """The whole page, for one run or several."""
    single = len(materials) == 1
    comparison = None if single else several.compared(materials)
    title, lead = _headline(materials[0]) if single else _headline_of_several(materials, comparison)
    names = ", ".join(material.run.name for material in materials)
    eyebrow = f"Query Mutator · {'run' if single else counted(len(materials), 'run')} · "
    if single:
        parts = run_cards(materials[0])
        tiles = run_tiles(materials[0])
    else:
        parts, tiles = _several_cards(materials, comparison), None
    body = join(
        element("a", "To the findings", href="#findings", class_="skip"),
        element(
            "header",
            element("p", eyebrow + name(names, 200), class_="eyebrow"),
            element("h1", title),
            element("p", lead, class_="lead") if lead else None,
            tiles,
            _contents(parts),
        ),
        element("main", *(markup for _, markup in parts), id="findings", tabindex="-1"),
        element("footer", element("p", MADE_BY)),
    )
    return _document(f"{title} · {name(names)}", body)


def _document(title: str, body: Markup) -> str:
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = join(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        Markup(f"<style>{style}</style>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'


@cache
def _style() -> str:
    return (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def _headline(material: Material) -> tuple[str, str]:
    if material.evaluation is not None:
        verdict = material.evaluation["verdict"]
        sentence = plain(verdict["sentence"], 600)
        sentence = f"{sentence} {another_score(material.evaluation)}".rstrip()
        claim = HEADLINES.get(str(verdict.get("outcome")), "What the run learned")
        if (after := findings.evaluated_after(material)) is not None:
            claim = f"Evaluated after {counted(after, 'step')}: {claim[:1].lower()}{claim[1:]}"
            return claim, f"{sentence} Training has gone on since."
        return claim, sentence
    if not material.digest.updates:
        return "No step has been made yet", ""
    claim, figures = findings.learned(material.digest)
    learned = f"{figures[:1].upper()}{figures[1:]}. " if figures else ""
    return claim, f"{learned}The policy has not been evaluated on other questions."


def _headline_of_several(
    materials: Sequence[Material], comparison: Comparison | None
) -> tuple[str, str]:
    title = f"{counted(len(materials), 'run')} compared"
    if len(several.together(materials)) == 1:
        title = f"{counted(len(materials), 'seed')} of the same run"
    return title, evidence(comparison) if comparison is not None else ""


def _contents(parts: Named) -> Markup:
    ids = [(label, _id_of(markup)) for label, markup in parts if label]
    items = [element("li", element("a", label, href=f"#{at}")) for label, at in ids if at]
    return element("nav", element("ul", *items), aria_label="Contents")


def _id_of(markup: Markup) -> str:
    _, found, rest = markup.partition(' id="')
    return rest.partition('"')[0] if found else ""


def _several_cards(materials: Sequence[Material], comparison: Comparison | None) -> Named:
    """The runs beside each other, then one by one."""
    head, rows = several.comparison_rows(materials)
    caption = "The runs side by side"
    content = [table(head, rows, caption=caption, kind="wide", titled=False)]
    if comparison is not None:
        if comparison.several_seeds:
            content.append(element("h3", "Seeds together"))
            if len(comparison.groups) > 1:
                content.append(note(several.BETTER))
            for score, columns, groups in several.group_tables(comparison):
                content.append(table(columns, groups, caption=score, kind="wide groups"))
        if warnings := cautions(comparison):
            items = [element("li", plain(warning, 800)) for warning in warnings[:MOST_WARNINGS]]
            content += [element("h3", "Watch out"), element("ul", *items, class_="warnings")]
        head, rows = several.metric_rows(comparison)
        metrics = table(head, rows, caption="Metrics that matter, run by run", kind="metrics")
        summary = element("summary", "The metrics that matter, and where each was best")
        content.append(element("details", summary, metrics))
    parts = [("Comparison", card("Comparison", caption, *content, key="comparison"))]
    found = several.together(materials)
    for heldout, label in ((False, "Learning"), (True, "Held-out questions")):
        if figure := several.curves(found, heldout=heldout):
            text = note(several.curves_note(figure))
            curves = card(label, figure.says, text, plotted(figure), key=figure.key)
            parts.append((label, curves))
    for number, material in enumerate(materials[:MOST_IN_DETAIL], 1):
        cards = [markup for _, markup in run_cards(material, f"run{number}-")]
        heading = element("summary", name(material.run.name))
        details = element(
            "details", heading, run_tiles(material), *cards, class_="run", id=f"run{number}"
        )
        parts.append((name(material.run.name, 40), details))
    if len(materials) > MOST_IN_DETAIL:
        left = len(materials) - MOST_IN_DETAIL
        parts.append(("", note(f"{counted(left, 'run')} more only in the comparison.")))
    return parts
