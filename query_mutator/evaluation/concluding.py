"""From measured questions to the files of an evaluation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from query_mutator.base.terminal import counted
from query_mutator.data import Question
from query_mutator.evaluation.comparison import Findings, compare
from query_mutator.evaluation.defaults import MARGIN
from query_mutator.evaluation.gap import find_gap
from query_mutator.evaluation.measuring import Measured
from query_mutator.evaluation.pairs import Pair
from query_mutator.evaluation.rating import helpful_rate, judge_and_facts
from query_mutator.evaluation.report import as_json, as_text, draw
from query_mutator.evaluation.styles import gains_by_style
from query_mutator.evaluation.verdict import Conclusion, decide
from query_mutator.models.encoders import Encoder
from query_mutator.operators import Operator
from query_mutator.runs.scores import TRAINED_UNDER, told_of_another_score

TABLE, PICTURE, FIGURES = "evaluation.txt", "evaluation.png", "evaluation.json"


@dataclass(frozen=True)
class Plan:
    """Which questions are asked, and where the result goes."""

    heldout: list[Question]
    training: list[Question]
    directory: Path
    again: str
    """The command that goes on with an interrupted evaluation."""
    dataset: str | None = None
    """The file that the held-out questions are from; None for the shipped ones."""
    margin: float = MARGIN
    pairs: Sequence[Pair] = ()
    """Held-out questions that are asked both clearly and messily."""
    available: int | None = None
    """How many held-out questions there are to ask; None where nobody knows."""


@dataclass(frozen=True)
class Answers:
    """What was measured and did not fail."""

    heldout: Sequence[Measured]
    training: Sequence[Measured]
    pairs: Sequence[tuple[Measured, Measured]]
    """The clear and the messy wording of the same questions."""


@dataclass(frozen=True)
class Concluded:
    """What an evaluation came to, as it was written."""

    findings: Findings
    conclusion: Conclusion
    text: str


def conclude(
    answers: Answers,
    plan: Plan,
    about: dict[str, Any],
    operators: Sequence[Operator],
    encoder: Encoder,
) -> Concluded:
    """Compares what was measured, and writes it to the directory of the plan."""
    findings = compare(answers.heldout, answers.training, helpful_rate(encoder))
    conclusion = decide(findings, margin=plan.margin, available=plan.available)
    asks_judge = about["objective"] == "judge"
    judge = judge_and_facts(plan.heldout, answers.heldout) if asks_judge else None
    gap = find_gap(answers.pairs, operators)
    styles = gains_by_style(answers.heldout, plan.heldout)
    text = as_text(findings, conclusion, judge, gap, styles)
    if about["left_out"]:
        text = f"{counted(about['left_out'], 'question')} left out: a call failed.\n\n{text}"
    if note := told_of_another_score(about[TRAINED_UNDER]):
        text = f"Note: {note}.\n\n{text}"
    (plan.directory / TABLE).write_text(text + "\n", encoding="utf-8")
    about = about | {"judge": asdict(judge) | {"agreement": judge.agreement} if judge else None}
    about |= {"margin": plan.margin}
    figures = as_json(findings, conclusion, about, gap, styles)
    written = json.dumps(figures, indent=2, ensure_ascii=False)
    (plan.directory / FIGURES).write_text(written + "\n", encoding="utf-8")
    draw(findings, conclusion, plan.directory / PICTURE)
    return Concluded(findings, conclusion, text)
