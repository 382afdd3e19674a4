"""An evaluation as a table, a picture and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from query_mutator.base.pictures import figure
from query_mutator.base.stored import without_infinities
from query_mutator.base.tables import Rows, layout
from query_mutator.base.terminal import counted, printable
from query_mutator.evaluation.apart import TERMS
from query_mutator.evaluation.comparison import Findings, Way
from query_mutator.evaluation.gap import Gap
from query_mutator.evaluation.gap_text import gap_as_json, gap_as_text
from query_mutator.evaluation.measuring import UNCHANGED
from query_mutator.evaluation.moved import with_interval
from query_mutator.evaluation.several import Together
from query_mutator.evaluation.statistics import FEWEST_SHOWN, Difference
from query_mutator.evaluation.styles import StyleGains, styles_as_text
from query_mutator.evaluation.verdict import Conclusion
from query_mutator.objectives.judge import JudgeAgreement

MOST_CATEGORIES = 40
LONGEST_LABEL = 40
HEADINGS = ("policy ahead by", "target calls", "mutator calls", "seconds")


def as_text(
    findings: Findings,
    conclusion: Conclusion,
    judge: JudgeAgreement | None = None,
    gap: Gap | None = None,
    styles: Sequence[StyleGains] = (),
) -> str:
    """The tables for the terminal, the conclusion last."""
    best = findings.best_single
    gains = [
        (
            gain.category,
            str(gain.questions),
            f"{gain.unchanged:.3f}",
            f"{gain.policy:.3f}",
            with_interval(gain.difference),
        )
        for gain in findings.categories
    ]
    parts = [
        f"{counted(findings.questions, 'held-out question')}; means for a question, with 95 % "
        "intervals that hold together within a table",
        _ways_table(findings.ways),
        f"single operators (on {counted(findings.training_questions, 'training question')} the "
        f"best is {best})",
        _ways_table(findings.operators),
        *_contenders(findings),
        *styles_as_text(styles),
        "by category, policy against unchanged",
        _table([("", "questions", "unchanged", "policy", "difference"), *gains]),
        "the policy chose: "
        + ", ".join(f"{name} {share:.0%}" for name, share in findings.chosen.items()),
        *_kept_line(findings),
        *_length_line(findings),
        *_judge_line(judge),
        *(gap_as_text(gap, best) if gap else []),
        conclusion.sentence,
    ]
    return "\n\n".join("\n".join(map(printable, part.split("\n"))) for part in parts)


def _contenders(findings: Findings) -> list[str]:
    if not findings.contenders:
        return []
    return [
        "contenders: adapters of the embedded model, each asked alone",
        _ways_table(findings.contenders),
    ]


def several_as_text(together: Together, conclusion: Conclusion) -> str:
    """The table of several policies, the conclusion last."""
    rows = [
        (name, with_interval(ahead), _each(together.each[name]))
        for name, ahead in together.ahead.items()
    ]
    after = 1 + list(together.ahead).index(UNCHANGED)
    rows[after:after] = [
        (f"  in {name}", with_interval(gain), _each(together.each_apart[name]))
        for name, gain in together.apart.items()
    ]
    return "\n\n".join(
        [
            f"{together.policies} policies on {counted(together.questions, 'held-out question')}: "
            "their mean lead, with 95 % intervals that hold together for these policies",
            _table([("", "policies ahead by", "each by"), *rows]),
            conclusion.sentence,
        ]
    )


def _kept_line(findings: Findings) -> list[str]:
    if findings.kept_share is None:
        return []
    return [
        "where a rewrite brought another answer, it kept one to a rewrite in "
        f"{findings.kept_share:.0%}, else the first answer"
    ]


def _length_line(findings: Findings) -> list[str]:
    if findings.score_and_length is None:
        return []
    given = ", given its facts" if findings.facts_known else ""
    return [
        f"correlation of score and length of an answer within its question{given}: "
        f"{findings.score_and_length:+.2f}"
    ]


def _judge_line(judge: JudgeAgreement | None) -> list[str]:
    if judge is None or judge.flip_share is None:
        return []
    agreeing = (
        f"prefers the one with more key facts in {judge.agreement:.0%} of the {judge.decided} "
        "it decides and facts tell apart"
        if judge.agreement is not None
        else "decides none that key facts tell apart"
    )
    return [
        f"the judge, of {judge.judged} pairs of answers: {agreeing}; changes its mind with the "
        f"order in {judge.flip_share:.0%}"
    ]


def as_json(
    findings: Findings,
    conclusion: Conclusion,
    about: dict[str, Any],
    gap: Gap | None = None,
    styles: Sequence[StyleGains] = (),
) -> dict[str, Any]:
    """All figures, for programs; null for the ends of an unknown interval."""
    between_twins = gap_as_json(gap, findings.best_single) if gap else None
    by_style = [asdict(one) for one in styles]
    figures = {**about, **asdict(findings), "gap": between_twins, "styles": by_style}
    return {"verdict": asdict(conclusion), **without_infinities(figures)}


def draw(findings: Findings, conclusion: Conclusion, path: Path) -> Path:
    """The policy's lead over every alternative, and its gain in every category, as a PNG."""
    leads = [(*_lead(way), "tab:blue") for way in findings.ways if way.policy_ahead]
    after = 1 + [name for name, *_ in leads].index(UNCHANGED)
    parts = [(f"in {name}", gain, "tab:purple") for name, gain in findings.apart.items()]
    leads[after:after] = parts
    few = len(leads)
    leads += [(*_lead(way), "0.45") for way in findings.operators]
    leads += [(*_lead(way), "tab:orange") for way in findings.contenders]
    gains = [
        (f"{gain.category} ({gain.questions})", gain.difference, "tab:green")
        for gain in findings.categories[:MOST_CATEGORIES]
    ]
    height = 1.6 + 0.26 * max(len(leads), len(gains))
    with figure(path, (11, height), panels=2) as (drawn, (left, right)):
        _forest(left, leads)
        left.axhline(few - 0.5, color="0.8", linewidth=0.8)
        left.set_title("Policy's lead over other ways of asking", fontsize=11)
        _forest(right, gains)
        right.set_title("Gain over unchanged, by category", fontsize=11)
        for axes in (left, right):
            axes.set_xlabel("difference, with 95 % intervals")
        drawn.suptitle(textwrap.fill(printable(conclusion.sentence), 120), fontsize=11)
    return path


def _lead(way: Way) -> tuple[str, Difference]:
    assert way.policy_ahead is not None
    return way.name, way.policy_ahead


def _forest(axes: Any, rows: Sequence[tuple[str, Difference, str]]) -> None:
    """Differences by name, each with its colour."""
    for place, (_, difference, colour) in enumerate(rows):
        if difference.groups >= FEWEST_SHOWN:
            axes.plot([difference.low, difference.high], [place, place], color=colour, linewidth=2)
        axes.plot([difference.mean], [place], "o", color=colour, markersize=5)
    axes.axvline(0, color="0.4", linewidth=1, linestyle="--")
    axes.set_yticks(range(len(rows)), [_label(name) for name, *_ in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.25)
    # One question in a category says nothing about its spread; it must not widen the axis.
    ends = [end for _, d, _ in rows for end in (d.low, d.high) if abs(end) < 1.5]
    reach = max([0.05, *map(abs, ends), *(abs(d.mean) for _, d, _ in rows)])
    axes.set_xlim(-1.08 * reach, 1.08 * reach)


def _table(rows: Rows) -> str:
    return layout(rows, indent="  ")


def _ways_table(ways: Sequence[Way]) -> str:
    """A row for each way of asking; facts and wording where the objective tells them."""
    worth = [
        "score",
        *(name for name in TERMS if any(getattr(way, name) is not None for way in ways)),
    ]
    return _table([("", *worth, *HEADINGS), *(_row(way, worth) for way in ways)])


def _row(way: Way, worth: Sequence[str]) -> tuple[str, ...]:
    return (
        way.name,
        *(f"{getattr(way, name):.3f}" for name in worth),
        with_interval(way.policy_ahead) if way.policy_ahead else "",
        f"{way.target_calls:.2f}",
        f"{way.mutator_calls:.2f}",
        f"{way.seconds:.2f}",
    )


def _each(leads: Sequence[float]) -> str:
    return ", ".join(f"{lead:+.3f}" for lead in leads)


def _label(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"
