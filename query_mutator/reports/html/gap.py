"""The gap between questions asked clearly and as people type, from an evaluation's figures."""

from __future__ import annotations

from typing import Any

from query_mutator.base.terminal import counted
from query_mutator.reports.html.digest import finite
from query_mutator.reports.html.evaluation import MISSING, PARTS, dicts, interval, number
from query_mutator.reports.html.figures import Forest
from query_mutator.reports.html.markup import Markup, escaped, name, plain
from query_mutator.reports.html.scales import signed
from query_mutator.reports.html.sections import (
    card,
    ends_told,
    forest_table,
    note,
    table,
    with_bounds,
)

SCORE = "score"


def gap_card(evaluation: dict[str, Any], prefix: str) -> Markup | None:
    """The gap, its two sides and what closes it; None where it was not measured."""
    gap = evaluation.get("gap")
    sides = gap.get("sides") if isinstance(gap, dict) else None
    if not isinstance(gap, dict) or not isinstance(sides, dict):
        return None
    rows = [
        (measure, _with_ends(side.get("gap")), number(side.get("clear")), number(side.get("messy")))
        for measure in (SCORE, *PARTS)
        if isinstance(side := sides.get(measure), dict)
    ]
    if not rows:
        return None
    content = [
        note(plain(gap.get("sentence", ""), 600)),
        table(("", "gap", "clear", "messy"), rows, caption="Both wordings, unchanged"),
    ]
    if (closing := closing_forest(evaluation)) is not None:
        content.append(forest_table(closing))
    return card("Clear and messy", _says(gap, sides), *content, key=f"{prefix}gap")


def _says(gap: dict[str, Any], sides: dict[str, Any]) -> str:
    pairs = counted(int(finite(gap.get("pairs")) or 0), "question")
    side = sides.get(SCORE)
    told = interval(side.get("gap"), "") if isinstance(side, dict) else None
    if told is None or told.certain != "better":
        return f"No gap is shown between clear and messy wording on {pairs}"
    return f"Asked clearly, {pairs} score {signed(told.mean)} higher than as people type them"


def closing_forest(evaluation: dict[str, Any]) -> Forest | None:
    """What each way of asking gains on the messy wording, and which share of the gap that is."""
    gap = evaluation.get("gap")
    closers = dicts(gap.get("closers")) if isinstance(gap, dict) else []
    told = [one["closes"] for one in closers if isinstance(one.get("closes"), dict)]
    parts = [part for part in PARTS if any(part in closes for closes in told)]
    rows = []
    for closer in closers:
        score, *others = (_closed(closer, measure) for measure in (SCORE, *parts))
        about = [_percent(score.get("share"))]
        for part in others:
            about += [_mean(part.get("gain")), _percent(part.get("share"))]
        by = " (mutator model)" if closer.get("asks_mutator") is True else ""
        row = interval(score.get("gain"), f"{name(closer.get('name'))}{by}", *about)
        rows += [row] if row else []
    says = "What is gained on the messy wording"
    heads = [head for part in parts for head in (part, "of its gap")]
    return Forest("closing", says, ("way of asking", "of the gap", *heads), rows) if rows else None


def _closed(closer: dict[str, Any], measure: str) -> dict[str, Any]:
    closes = closer.get("closes")
    found = closes.get(measure) if isinstance(closes, dict) else None
    return found if isinstance(found, dict) else {}


def _percent(share: Any) -> str:
    mean = finite(share.get("mean")) if isinstance(share, dict) else None
    return MISSING if mean is None else f"{100 * mean:.0f} %".replace("-", "−")


def _mean(gain: Any) -> str:
    found = interval(gain, "")
    return MISSING if found is None else signed(found.mean)


def _with_ends(difference: Any) -> Markup:
    found = interval(difference, "")
    if found is None:
        return escaped(MISSING)
    return with_bounds(signed(found.mean), ends_told(found))
