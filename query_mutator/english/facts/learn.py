"""Learns what the signs of a claimed fact count, from the labelled answers in data/answers.

`python -m query_mutator.english.facts.learn` writes weights.toml beside it: the same files give the
same weights.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import OneLineParser, as_main
from query_mutator.base.untrusted import parse_json, read_lines
from query_mutator.english.facts.finder import WEIGHTS_FILE, decide
from query_mutator.english.facts.judging import Fact, Mention, find_mentions
from query_mutator.english.facts.weighing import Weights, probability

DATA = Path(__file__).parents[2] / "data"
LABELLED = tuple(DATA / "answers" / f"{name}.jsonl" for name in ("dev", "dev_2", "dev_real"))
PENALTY = 1.0
THRESHOLD = 0.5
ORDINARY = 3.0
"""How often an answer counts that was not written as a trap: most of the labelled ones were, and
few of those that people get."""
MOST_WRONG_MENTIONS = 4
"""Of a fact that an answer does not give: repeated ones say the same again."""
ROUNDS = 3
FOLDS = 10


@dataclass(frozen=True)
class Example:
    """A fact of a question, an answer, and whether a person found the fact in it."""

    question: str
    answer: str
    style: str
    hard: str
    fact: int
    """Which of its question's facts it is."""
    facts: int
    given: bool
    mentions: Sequence[Mention]

    def with_given(self, given: bool) -> Example:
        """The same with another label."""
        return replace(self, given=given)

    @property
    def possible(self) -> list[Mention]:
        """The mentions that the weights decide about."""
        free = [mention for mention in self.mentions if not mention.veto]
        return [] if free and self.facts == 1 and free[0].amount is not None else free


def read_examples(files: Sequence[Path]) -> list[Example]:
    """A row for each fact of each labelled answer."""
    lines = read_lines(DATA / "questions.jsonl", "questions")
    questions = {row["id"]: row for row in map(parse_json, lines)}
    return [
        example
        for file in files
        for row in map(parse_json, read_lines(file, "labelled answers"))
        for example in _examples(row, questions[row["id"]])
    ]


def _examples(row: dict[str, Any], question: dict[str, Any]) -> Iterator[Example]:
    facts: list[Fact] = [tuple(fact) for fact in question["key_facts"]]
    for place, (fact, given) in enumerate(zip(facts, row["facts"], strict=True)):
        found = find_mentions(row["answer"], question["question"], question["reference"], fact)
        yield Example(
            question=row["id"],
            answer=row["answer"],
            style=row["style"],
            hard=row["hard"],
            fact=place,
            facts=len(facts),
            given=given,
            mentions=found,
        )


def fit(examples: Sequence[Example]) -> Weights:
    """The weights that tell the facts that were given from those only mentioned.

    Of several mentions of a given fact, that one is taken which most looks like the answer.
    """
    from sklearn.linear_model import LogisticRegression

    names = list(next(one.possible[0].signs for one in examples if one.possible))
    weights = Weights(0.0, THRESHOLD, dict.fromkeys(names, 0.0))
    for _ in range(ROUNDS):
        chosen = [
            (mention, example) for example in examples for mention in _telling(example, weights)
        ]
        rows = np.array([[mention.signs[name] for name in names] for mention, _ in chosen])
        counts = [1.0 if example.hard else ORDINARY for _, example in chosen]
        model = LogisticRegression(C=1 / PENALTY, max_iter=5000)
        model.fit(rows, [example.given for _, example in chosen], sample_weight=counts)
        learned = zip(names, map(float, model.coef_[0]), strict=True)
        weights = Weights(float(model.intercept_[0]), THRESHOLD, dict(learned))
    return weights


def _telling(example: Example, weights: Weights) -> Sequence[Mention]:
    if not example.given or not example.possible:
        return example.possible[:MOST_WRONG_MENTIONS]
    return [max(example.possible, key=lambda mention: probability(mention.signs, weights))]


def cross_validated(examples: Sequence[Example]) -> list[bool]:
    """Whether each fact is found by weights that were learned without its question."""
    from sklearn.model_selection import GroupKFold

    found = [False] * len(examples)
    groups = [example.question for example in examples]
    for others, these in GroupKFold(FOLDS).split(groups, groups=groups):
        weights = fit([examples[place] for place in others])
        for place in these:
            one = examples[place]
            found[place] = decide(one.mentions, one.facts == 1, weights).found
    return found


def as_toml(weights: Weights) -> str:
    """The weights as they are stored."""
    lines = [
        "# What each sign counts, in units of log odds. Made by",
        "# python -m query_mutator.english.facts.learn",
        f"bias = {weights.bias:.3f}",
        f"threshold = {weights.threshold:.2f}",
        "",
        "[signs]",
    ]
    by_weight = sorted(weights.signs.items(), key=lambda item: -abs(item[1]))
    return "\n".join(lines + [f"{name} = {weight:.3f}" for name, weight in by_weight]) + "\n"


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m query_mutator.english.facts.learn", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", default=LABELLED)
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    args = parser.parse_args(argv)
    if not importlib.util.find_spec("sklearn"):
        raise UserError("scikit-learn is not installed: pip install -r requirements-dev.txt")
    weights = fit(read_examples(args.files))
    args.out.write_text(as_toml(weights), encoding="utf-8")
    print(f"{len(weights.signs)} weights in {args.out}")
    return 0


main = as_main(run)

if __name__ == "__main__":
    raise SystemExit(main())
