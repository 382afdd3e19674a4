"""Does a score tell right answers from wrong ones? Each objective beside a person's labels.

    python -m benchmarks.scoring.agreement
    python -m benchmarks.scoring.agreement --table table.jsonl     # and on a model's own answers
    python -m benchmarks.scoring.agreement --objectives answer,helpful   # without a model

The labels are in `query_mutator/data/answers/`, `benchmarks.scoring.table` makes tables.
`consistency` and `judge` ask the embedded model. Consistency says something of the model's own
answers only; a judge is shown a right and a wrong answer to the same question.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scoring.figures import (
    area_under_curve,
    correlation_given,
    share_of_wrong_with_full_marks,
    within,
)
from query_mutator.base.stored import stored_as
from query_mutator.base.tables import layout
from query_mutator.base.terminal import OneLineParser
from query_mutator.base.untrusted import parse_json, read_lines
from query_mutator.data import Question, load_questions
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.environment.episodes import opening_state
from query_mutator.environment.scoring import score_flow, scoring_runner
from query_mutator.evaluation.measuring import Measured
from query_mutator.models.cache import default_cache_file
from query_mutator.models.calls import Failure
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models, open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import Objective, Score, Weights, load_objective

LABELS = DEFAULT_FILE.parent / "answers"
OWN = "135M"
"""The style of the labelled answers that the embedded model gave itself."""
ANSWER_TOKENS = 40
OBJECTIVES = "answer,helpful,consistency,judge"
WHOLE = "the whole score"


@dataclass(frozen=True)
class Labelled:
    """An answer and a person's word on it."""

    question: Question
    answer: str
    right: bool
    own: bool
    """Whether it is the embedded model's own."""


@dataclass(frozen=True)
class Marked:
    """Labelled answers with the scores they got."""

    rows: Sequence[Labelled]
    scores: Sequence[Score]

    def values(self, term: str) -> np.ndarray:
        """The term's marks, or the whole score."""
        return np.array(
            [score.total if term == WHOLE else score.terms[term].value for score in self.scores]
        )

    def of(self, own: bool) -> Marked:
        """The embedded model's own answers, or the others."""
        chosen = [
            (row, score)
            for row, score in zip(self.rows, self.scores, strict=True)
            if row.own is own
        ]
        return Marked([row for row, _ in chosen], [score for _, score in chosen])


def main(argv: Sequence[str] | None = None) -> None:
    """Scores, and prints how the scores agree with the labels."""
    parser = OneLineParser(prog="python -m benchmarks.scoring.agreement", description=__doc__)
    parser.add_argument("--part", choices=("test", "dev"), default="test")
    parser.add_argument("--objectives", default=OBJECTIVES, help="names, with commas between")
    parser.add_argument("--table", type=Path, help="a table of answers to measure on too")
    report(parser.parse_args(argv))


def report(args: argparse.Namespace) -> None:
    """The tables, one for the labels and one for a model's own answers."""
    questions = {question.id: question for question in load_questions()}
    labelled = read_labelled(LABELS / f"{args.part}.jsonl", questions)
    settings = ModelSettings(
        server="embedded",
        slots=8,
        max_tokens_answer=ANSWER_TOKENS,
        cache_file=default_cache_file(),
    )
    with open_models(settings) as models:
        rows: list[tuple[str, ...]] = [
            ("objective", "term", "answers", "right | wrong", "length", "wrong, .9 marks")
        ]
        for name in args.objectives.split(","):
            objective = load_objective(name, Weights())
            rows.extend(label_rows(name, marked(name, objective, labelled, models)))
        print(f"{len(labelled)} labelled answers ({args.part})\n{layout(rows)}")
        if args.table:
            table = [stored_as(Measured, parse_json(line)) for line in read_lines(args.table, "")]
            print(f"\n{len(table)} questions × {len(table[0].ways)} ways\n")
            print(layout(list(table_rows(args.objectives.split(","), table, questions, models))))


def read_labelled(file: Path, questions: dict[str, Question]) -> list[Labelled]:
    """The labelled answers of a file."""
    rows = [parse_json(line) for line in read_lines(file, "labelled answers")]
    return [
        Labelled(questions[row["id"]], row["answer"], row["right"], row["style"] == OWN)
        for row in rows
    ]


def marked(name: str, objective: Objective, labelled: Sequence[Labelled], models: Models) -> Marked:
    """The answers that the objective can say something of, scored."""
    pairs = list(_beside(name, labelled))
    runner = scoring_runner(objective, models, None)
    flows = (_scored(row, beside, objective, models.roles) for row, beside in pairs)
    found: dict[int, Score] = dict(runner.each(flows))
    return Marked([row for row, _ in pairs], [found[index] for index in range(len(pairs))])


def _beside(name: str, labelled: Sequence[Labelled]) -> Iterator[tuple[Labelled, str]]:
    """The answers to score, each with the one that counts as the first answer."""
    by_question: dict[str, list[Labelled]] = defaultdict(list)
    for row in labelled:
        by_question[row.question.id].append(row)
    for row in labelled:
        others = [one for one in by_question[row.question.id] if one.right is not row.right]
        if name == "judge" and not others:
            continue
        if name == "consistency" and not row.own:
            continue
        yield row, others[0].answer if others else row.answer


async def _scored(row: Labelled, beside: str, objective: Objective, roles: Roles) -> Score:
    state = opening_state(row.question.question, row.answer, cut=False, max_rewrites=1)
    score = await score_flow(row.question, replace(state, first_answer=beside), objective, roles)
    if isinstance(score, Failure):
        raise RuntimeError(score.reason)
    return score


def label_rows(name: str, all_marked: Marked) -> Iterator[tuple[str, ...]]:
    """A row for each term and each kind of answers."""
    for term in (WHOLE, *_terms(all_marked.scores)):
        for kind, part in (
            ("all", all_marked),
            ("imitated", all_marked.of(own=False)),
            ("the model's own", all_marked.of(own=True)),
        ):
            if len({row.right for row in part.rows}) < 2:
                continue
            right = np.array([row.right for row in part.rows])
            words = np.array([len(row.answer.split()) for row in part.rows], float)
            marks = part.values(term)
            yield (
                name,
                term,
                f"{kind} ({len(right)})",
                f"{area_under_curve(marks, right):.3f}",
                f"{correlation_given(marks, words, right.astype(float)):+.2f}",
                f"{share_of_wrong_with_full_marks(marks, right, term == WHOLE):.3f}",
            )


def table_rows(
    names: Sequence[str], table: Sequence[Measured], questions: dict[str, Question], models: Models
) -> Iterator[tuple[str, ...]]:
    """How each term fares among the answers to one question, beside its key facts."""
    yield ("objective", "term", "right | wrong", "with facts", "length", "wrong, .9 marks")
    asked = [one for one in table if questions[one.id].key_facts]
    answers = [(questions[one.id], one.ways[way]) for one in asked for way in one.ways]
    groups = np.repeat(np.arange(len(asked)), len(asked[0].ways))
    words = within(np.array([len(tried.answer.split()) for _, tried in answers], float), groups)
    facts = _facts_of(answers, models)
    for name in names:
        objective = load_objective(name, Weights())
        if objective.gather is not None:
            continue
        labelled = [Labelled(one, tried.answer, False, True) for one, tried in answers]
        scores = marked(name, objective, labelled, models)
        for term in (WHOLE, *_terms(scores.scores)):
            marks, right = scores.values(term), facts == 1
            inside = within(marks, groups), within(facts, groups)
            yield (
                name,
                term,
                f"{area_under_curve(marks, right):.3f}",
                f"{correlation_given(*inside):+.2f}",
                f"{correlation_given(inside[0], words, inside[1]):+.2f}",
                f"{share_of_wrong_with_full_marks(marks, right, term == WHOLE):.3f}",
            )


def _facts_of(answers: Sequence[tuple[Question, Any]], models: Models) -> np.ndarray:
    labelled = [Labelled(one, tried.answer, False, True) for one, tried in answers]
    return marked("answer", load_objective("answer", Weights()), labelled, models).values("facts")


def _terms(scores: Sequence[Score]) -> list[str]:
    return [name for name, term in scores[0].terms.items() if term.weight > 0]


if __name__ == "__main__":
    main()
