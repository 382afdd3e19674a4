"""What an evaluation found, from its figures as they are on disk: whatever may stand there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from query_mutator.base.terminal import counted
from query_mutator.reports.html.digest import finite
from query_mutator.reports.html.figures import FEWEST_SHOWN, Forest, Interval
from query_mutator.reports.html.markup import name, plain
from query_mutator.reports.html.scales import signed
from query_mutator.runs.scores import TRAINED_UNDER, told_of_another_score

MOST_CATEGORIES = 40
TABLES = ("ways", "operators", "contenders")
"""Where ways of asking are told, in this order."""
STYLES = ("messy", "clear")
PARTS = ("facts", "wording")
"""Parts of a score that are shown apart, where an evaluation has them."""
MISSING = "–"


def another_score(evaluation: dict[str, Any]) -> str:
    """A sentence where the policy was trained under another score than it is judged by, or ""."""
    scores, judged_by = evaluation.get(TRAINED_UNDER), evaluation.get("score")
    if not isinstance(scores, list) or type(judged_by) is not int:
        return ""
    told = told_of_another_score([one for one in scores if type(one) is int], judged_by)
    return f"{told[:1].upper()}{plain(told[1:], 300)}. " if told else ""


def evaluated(evaluation: dict[str, Any]) -> str:
    """The gain over unchanged questions, in a sentence."""
    asked = counted(int(finite(evaluation.get("questions")) or 0), "question")
    for way in dicts(evaluation.get("ways")):
        lead = interval(way.get("policy_ahead"), way.get("name"))
        if lead is not None and way.get("name") == "unchanged":
            return f"On {asked} it was not trained on, answers change by {signed(lead.mean)}"
    return f"On {asked} it was not trained on"


def leads(evaluation: dict[str, Any]) -> Forest | None:
    """The policy's lead over every other way of asking."""
    ways = [way for table in TABLES for way in dicts(evaluation.get(table))]
    parts = [part for part in PARTS if any(finite(way.get(part)) is not None for way in ways)]
    rows = []
    for way in ways:
        worth = [number(way.get(key)) for key in ("score", *parts)]
        calls = [finite(way.get(key)) for key in ("target_calls", "mutator_calls")]
        known = [count for count in calls if count is not None]
        costs = [number(sum(known) if known else None, 2), number(way.get("seconds"), 2)]
        row = interval(way.get("policy_ahead"), way.get("name"), *worth, *costs)
        rows += [row] if row else []
    says = "The policy's lead over other ways of asking"
    headings = ("the policy against", "its score", *parts, "calls", "seconds")
    return Forest("leads", says, headings, rows) if rows else None


def alternatives(evaluation: dict[str, Any]) -> int:
    """How many of the leads are over ways of asking; the others are over single operators."""
    ways = dicts(evaluation.get("ways"))
    return sum(interval(way.get("policy_ahead"), "") is not None for way in ways)


def parts_apart(evaluation: dict[str, Any]) -> Forest | None:
    """What the policy changes in facts and in wording."""
    found = evaluation.get("apart")
    parts = found if isinstance(found, dict) else {}
    means = {str(way.get("name")): way for way in dicts(evaluation.get("ways"))}
    rows = []
    for part in PARTS:
        before, after = (means.get(way, {}).get(part) for way in ("unchanged", "policy"))
        row = interval(parts.get(part), part, number(before), number(after))
        rows += [row] if row else []
    says = "What the policy changes in facts and in wording"
    return Forest("apart", says, ("part of the score", "before", "after"), rows) if rows else None


def gains(evaluation: dict[str, Any]) -> Forest | None:
    """The policy's gain in every category."""
    rows = []
    for gain in dicts(evaluation.get("categories"))[:MOST_CATEGORIES]:
        questions = number(gain.get("questions"), 0)
        row = interval(gain.get("difference"), gain.get("category"), questions)
        rows += [row] if row else []
    says = "The policy's gain over the question unchanged, by kind of question"
    return Forest("gains", says, ("kind of question", "questions"), rows) if rows else None


def gains_by_style(evaluation: dict[str, Any]) -> list[Forest]:
    """What every way of asking gains on messy questions, and on clear ones."""
    told = {str(found.get("style")): found for found in dicts(evaluation.get("styles"))}
    forests = [_gains_on(style, told[style]) for style in STYLES if style in told]
    return [forest for forest in forests if forest.rows]


def _gains_on(style: str, found: dict[str, Any]) -> Forest:
    ways = found.get("ways")
    told = {
        way: gains
        for way, gains in (ways.items() if isinstance(ways, dict) else ())
        if isinstance(gains, dict)
    }
    parts = [part for part in PARTS if any(part in gains for gains in told.values())]
    rows = []
    for way, gains in told.items():
        others = [interval(gains.get(part), part) for part in parts]
        about = [MISSING if other is None else signed(other.mean) for other in others]
        row = interval(gains.get("score"), way, *about)
        rows += [row] if row else []
    asked = counted(int(finite(found.get("questions")) or 0), f"{style} question")
    says = f"What is gained over the question unchanged, on {asked}"
    return Forest(f"gains-{style}", says, ("way of asking", *parts), rows)


def interval(difference: Any, label: Any, *about: str) -> Interval | None:
    """A difference as it was written, with further cells of its row; None for anything else."""
    mean = finite(difference.get("mean")) if isinstance(difference, dict) else None
    if not isinstance(difference, dict) or mean is None:
        return None
    low, high = finite(difference.get("low")), finite(difference.get("high"))
    if (finite(difference.get("groups")) or 0) < FEWEST_SHOWN or low is None or high is None:
        low = high = None
    return Interval(name("" if label is None else label), mean, low, high, about)


def number(value: Any, digits: int = 3) -> str:
    """A number as it is shown; a dash for anything else."""
    known = finite(value)
    return MISSING if known is None else f"{known:,.{digits}f}"


def dicts(value: Any) -> list[dict[str, Any]]:
    """The dictionaries in a list; none for anything else."""
    found = value if isinstance(value, Sequence) and not isinstance(value, str) else []
    return [item for item in found if isinstance(item, dict)]
