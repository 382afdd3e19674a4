"""Does a score tell right answers from wrong ones? Each objective beside a person's labels.

    python -m benchmarks.scoring.agreement
    python -m benchmarks.scoring.agreement --table table.jsonl     # and on a model's own answers
    python -m benchmarks.scoring.agreement --objectives answer,helpful   # without a model

The labels are in `query_mutator/data/answers/`, `benchmarks.scoring.table` makes tables. `alone`
is closeness where key facts are not known: it then neither sees them nor is held back by them.
`consistency` and `judge` ask the embedded model. Consistency says something of the model's own
answers only; a judge is shown a right and a wrong answer to the same question. `own` answers are
the embedded model's, `ordinary` ones were written as models of several kinds answer, `hard` ones
as traps.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
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
from query_mutator.models.encoders import load_encoder
from query_mutator.models.roles import Roles
from query_mutator.models.session import Models, open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import (
    AnsweredQuestion,
    Batch,
    Objective,
    Score,
    Weights,
    load_objective,
)

LABELS = DEFAULT_FILE.parent / "answers"
OWN_STYLE = "135M"
"""The style of the labelled answers that the embedded model gave itself."""
OWN, ORDINARY, HARD = "own", "ordinary", "hard"
ANSWER_TOKENS = 40
OBJECTIVES = "answer,helpful,consistency,judge"
WHOLE = "the whole score"
SCORED_AT_ONCE = 64


@dataclass(frozen=True)
class Labelled:
    """An answer and a person's word on it."""

    question: Question
    answer: str
    right: bool
    kind: str
    """`own` for the embedded model's own, `hard` for a trap, else `ordinary`."""


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

    def of(self, kind: str) -> Marked:
        """The answers of one kind."""
        chosen = [
            (row, score)
            for row, score in zip(self.rows, self.scores, strict=True)
            if row.kind == kind
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
    labelled = read_labelled(sorted(LABELS.glob(f"{args.part}*.jsonl")), questions)
    rows: list[tuple[str, ...]] = [
        ("objective", "term", "answers", "right | wrong", "length", "wrong, .9 marks")
    ]
    names = args.objectives.split(",")
    with ExitStack() as stack:
        scoring = Scoring(stack)
        for name in names:
            rows.extend(label_rows(name, scoring.marked(name, labelled)))
            if name == "answer":
                rows.extend(label_rows("alone", scoring.marked(name, without_facts(labelled))))
    print(f"{len(labelled)} labelled answers ({args.part})\n{layout(rows)}")
    if args.table:
        table = [stored_as(Measured, parse_json(line)) for line in read_lines(args.table, "")]
        print(f"\n{len(table)} questions × {len(table[0].ways)} ways\n")
        print(layout(list(table_rows(names, table, questions))))


def read_labelled(files: Sequence[Path], questions: dict[str, Question]) -> list[Labelled]:
    """The labelled answers of files."""
    rows = [parse_json(line) for file in files for line in read_lines(file, "labelled answers")]
    return [Labelled(questions[row["id"]], row["answer"], row["right"], _kind(row)) for row in rows]


def _kind(row: dict[str, Any]) -> str:
    if row["style"] == OWN_STYLE:
        return OWN
    return HARD if row["hard"] else ORDINARY


def without_facts(labelled: Sequence[Labelled]) -> list[Labelled]:
    """The answers to questions of which nobody knows the key facts."""
    return [replace(row, question=replace(row.question, key_facts=())) for row in labelled]


class Scoring:
    """Scores answers; models are opened where an objective has calls to make."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._models: Models | None = None

    def marked(self, name: str, labelled: Sequence[Labelled]) -> Marked:
        """The answers that the objective can say something of, scored."""
        objective = load_objective(name, Weights())
        pairs = list(_beside(name, labelled))
        rows = [row for row, _ in pairs]
        if objective.gather is None:
            return Marked(rows, _scores(objective, rows))
        models = self._opened()
        runner = scoring_runner(objective, models, None)
        flows = (_scored(row, beside, objective, models.roles) for row, beside in pairs)
        found: dict[int, Score] = dict(runner.each(flows))
        return Marked(rows, [found[index] for index in range(len(pairs))])

    def _opened(self) -> Models:
        if self._models is None:
            settings = ModelSettings(
                server="embedded",
                slots=8,
                max_tokens_answer=ANSWER_TOKENS,
                cache_file=default_cache_file(),
            )
            self._models = self._stack.enter_context(open_models(settings))
        return self._models


def _scores(objective: Objective, rows: Sequence[Labelled]) -> list[Score]:
    """The scores of an objective that makes no calls."""
    encoder = load_encoder()
    answered = [
        AnsweredQuestion(
            row.question.question,
            row.question.question,
            "{query}",
            row.answer,
            row.answer,
            row.question.reference,
            row.question.key_facts,
        )
        for row in rows
    ]
    batches = (
        Batch.of(answered[start : start + SCORED_AT_ONCE], encoder.encode_each)
        for start in range(0, len(answered), SCORED_AT_ONCE)
    )
    return [score for batch in batches for score in objective(batch)]


def _beside(name: str, labelled: Sequence[Labelled]) -> Iterator[tuple[Labelled, str]]:
    """The answers to score, each with the one that counts as the first answer."""
    by_question: dict[str, list[Labelled]] = defaultdict(list)
    for row in labelled:
        by_question[row.question.id].append(row)
    for row in labelled:
        others = [one for one in by_question[row.question.id] if one.right is not row.right]
        if name == "judge" and not others:
            continue
        if name == "consistency" and row.kind != OWN:
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
    for term in _terms(name, all_marked.scores):
        parts = {kind: all_marked.of(kind) for kind in (OWN, ORDINARY, HARD)}
        for kind, part in {"all": all_marked, **parts}.items():
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
    names: Sequence[str], table: Sequence[Measured], questions: dict[str, Question]
) -> Iterator[tuple[str, ...]]:
    """How each term fares among the answers to one question, beside its key facts."""
    yield ("objective", "term", "right | wrong", "with facts", "length", "wrong, .9 marks")
    asked = [one for one in table if questions[one.id].key_facts]
    answers = [
        Labelled(questions[one.id], tried.answer, False, OWN)
        for one in asked
        for tried in one.ways.values()
    ]
    groups = np.repeat(np.arange(len(asked)), [len(one.ways) for one in asked])
    words = within(np.array([len(row.answer.split()) for row in answers], float), groups)
    answer = load_objective("answer", Weights())
    facts = Marked(answers, _scores(answer, answers)).values("facts")
    for name in names:
        objective = load_objective(name, Weights())
        if objective.gather is not None:
            continue
        scored = {name: Marked(answers, _scores(objective, answers))}
        if name == "answer":
            scored["alone"] = Marked(answers, _scores(objective, without_facts(answers)))
        for kind, scores in scored.items():
            for term in _terms(kind, scores.scores):
                marks, right = scores.values(term), facts == 1
                inside = within(marks, groups), within(facts, groups)
                yield (
                    kind,
                    term,
                    f"{area_under_curve(marks, right):.3f}",
                    f"{correlation_given(*inside):+.2f}",
                    f"{correlation_given(inside[0], words, inside[1]):+.2f}",
                    f"{share_of_wrong_with_full_marks(marks, right, term == WHOLE):.3f}",
                )


def _terms(kind: str, scores: Sequence[Score]) -> list[str]:
    """The whole score and its terms; what is alone is a whole."""
    terms = [name for name, term in scores[0].terms.items() if term.weight > 0]
    return terms if kind == "alone" else [WHOLE, *terms]


if __name__ == "__main__":
    main()
