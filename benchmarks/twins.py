"""How hard is it to tell generated messy questions from those that people wrote?

    python -m benchmarks.twins
    python -m benchmarks.twins --split heldout   # at the very end: nothing is chosen on it

Classifiers that never saw a meaning guess whose hand it was, at as many questions of either hand:
0.5 of the area under the curve is chance.

Four comparisons, from the cleanest on:

- same question, same style: messy twins by hand of clear questions, and what the generator makes
  of the same clear questions in the same styles; once more by a classifier that also learns from
  the second comparison
- same meaning: messy questions that were written by hand, and what the generator makes of
  their clear twins, in the six styles that there are among them
- one hand beside another: the twins by hand beside the messy questions, which other hands wrote.
  Nothing is generated here: so well are people told from each other.
- as shipped: all of these beside the generated rows of `twins.jsonl`. The questions are not the
  same here, so topics tell them apart too: how well, the column "clear forms alone" says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks.scoring.figures import area_under_curve
from query_mutator.base.errors import UserError
from query_mutator.base.tables import layout
from query_mutator.base.terminal import OneLineParser
from query_mutator.data import Question, load_questions
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.data.messing import STYLES, TwinWriter
from query_mutator.models.encoders import Encoder, load_encoder

FOLDS = 5
TRAIN, HELD_OUT = "train", "heldout"
AMONG_THE_MESSY = ("typos", "filler", "runon", "telegram", "nonnative", "alarm")
MIXED = "mixed"
"""The style of messy questions, which is not written beside them."""
MARKS = ",.?!'\"-:;()"
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Written:
    """A messy question and whose hand it is."""

    text: str
    style: str
    meaning: str
    generated: bool
    clear: str
    """The same, asked clearly."""


@dataclass(frozen=True)
class Guesses:
    """How well a classifier told the hands apart."""

    accuracy: float
    area: float
    by_style: dict[str, float]


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table for each comparison."""
    parser = OneLineParser(prog="python -m benchmarks.twins", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="generators and folds to average over")
    parser.add_argument("--telling", type=int, default=0, help="words that tell most, to print")
    parser.add_argument("--split", choices=(TRAIN, HELD_OUT), default=TRAIN)
    args = parser.parse_args(argv)
    if args.telling and args.split == HELD_OUT:
        raise UserError(
            "--telling would show what is in held-out questions: leave one of the two out"
        )
    encoder = load_encoder()
    for name, compare in COMPARISONS.items():
        if args.split == HELD_OUT and compare is as_shipped:
            continue  # no generated twin of these is shipped
        samples = [compare(Random(seed), args.split) for seed in range(args.seeds)]
        more = [
            same_meaning(Random(seed), args.split) if compare is same_question else []
            for seed in range(args.seeds)
        ]
        counts = [sum(row.generated == hand for row in samples[0]) for hand in (False, True)]
        print(f"\n{name}: {counts[0]} by hand, {counts[1]} generated")
        print(
            _table([_all(sample, seed, encoder, more[seed]) for seed, sample in enumerate(samples)])
        )
        if args.telling:
            print(*_telling(samples[0], args.telling), sep="\n")


def same_question(random: Random, split: str = TRAIN) -> list[Written]:
    """Twins by hand of clear questions, and generated ones of the same in the same styles."""
    questions, writer = _questions(split), TwinWriter(random)
    written = []
    for row in _twins():
        question = questions.get(row["id"])
        if question is None or row["style"] == "clear" or row["hand"] == "generated":
            continue
        made = writer.twin(question.question, row["style"], question.category)
        if made is not None:
            written += _pair(row["twin"], made, row["style"], question.meaning, question.question)
    return written


def same_meaning(random: Random, split: str = TRAIN) -> list[Written]:
    """Messy questions by hand, and generated twins of their clear twins."""
    questions, writer = _questions(split), TwinWriter(random)
    clear = [row for row in _twins() if row["style"] == "clear" and row["id"] in questions]
    written = []
    for place, row in enumerate(row for row in clear if "kind" not in questions[row["id"]].columns):
        question = questions[row["id"]]
        style = AMONG_THE_MESSY[place % len(AMONG_THE_MESSY)]
        if made := writer.twin(row["twin"], style, question.category):
            written += _pair(question.question, made, MIXED, question.meaning, row["twin"])
    return written


def as_shipped(random: Random, split: str = TRAIN) -> list[Written]:
    """All of training that was written messily by hand, and the generated rows."""
    questions = _questions(split)
    written = []
    for row in _twins():
        question = questions.get(row["id"])
        if question is None or ("kind" in question.columns and row["style"] == "clear"):
            continue
        if row["style"] == "clear":
            one = Written(question.question, MIXED, question.meaning, False, row["twin"])
        else:
            generated = row["hand"] == "generated"
            one = Written(row["twin"], row["style"], question.meaning, generated, question.question)
        written.append(one)
    return written


def two_hands(random: Random, split: str = TRAIN) -> list[Written]:
    """No generated rows: twins by hand beside messy questions by other hands, as if generated."""
    return [
        replace(row, generated=row.style != MIXED, style=MIXED)
        for row in as_shipped(random, split)
        if not row.generated and (row.style == MIXED or row.style in AMONG_THE_MESSY)
    ]


COMPARISONS = {
    "same question, same style": same_question,
    "same meaning": same_meaning,
    "as shipped": as_shipped,
    "no generated ones, one hand beside another": two_hands,
}


def guess(
    written: Sequence[Written],
    model: BaseEstimator,
    features: Numbers,
    seed: int,
    more: Sequence[Written] = (),
) -> Guesses:
    """Each question guessed by a classifier that saw none of its meaning, at balanced classes.

    The features are texts where there are more questions to learn from, which are not guessed.
    """
    taught = np.array([row.text for row in more], dtype=object)
    taught_hands = np.array([row.generated for row in more], dtype=bool)
    generated = np.array([row.generated for row in written])
    meanings = np.array([row.meaning for row in written])
    scores = np.zeros(len(written))
    for train, test in GroupKFold(FOLDS, shuffle=True, random_state=seed).split(
        features, groups=meanings
    ):
        model.fit(
            np.concatenate([features[train], taught]) if more else features[train],
            np.concatenate([generated[train], taught_hands]),
        )
        scores[test] = model.decision_function(features[test])
    right = (scores > 0) == generated
    styles = np.array([row.style for row in written])
    both = [style for style in STYLES if len(set(generated[styles == style])) == 2]
    return Guesses(
        accuracy=float((right[generated].mean() + right[~generated].mean()) / 2),
        area=area_under_curve(scores, generated),
        by_style={
            style: area_under_curve(scores[styles == style], generated[styles == style])
            for style in both
        },
    )


def by_letters() -> BaseEstimator:
    """A classifier by the parts of words, and by words and pairs of them."""
    letters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 4), lowercase=False, sublinear_tf=True
    )
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\S+", sublinear_tf=True)
    return make_pipeline(make_union(letters, words), _regression(3.0))


def by_sense() -> BaseEstimator:
    """A classifier by MiniLM vectors beside lengths and marks."""
    return make_pipeline(FunctionTransformer(), StandardScaler(), _regression(0.01))


def surface(text: str) -> list[float]:
    """Lengths, marks and capitals of a text."""
    words = text.split()
    return [
        np.log1p(len(text)),
        np.log1p(len(words)),
        len(text) / max(len(words), 1),
        sum(letter.isupper() for letter in text) / len(text),
        float(text[:1].isupper()),
        float(text[-1:].isalnum()),
        len(re.findall(r"[.!?] ", text)) / len(words),
        *(text.count(mark) / len(words) for mark in MARKS),
    ]


def _all(
    written: Sequence[Written], seed: int, encoder: Encoder, more: Sequence[Written]
) -> dict[str, Guesses]:
    texts = [row.text for row in written]
    clear = np.array([row.clear for row in written], dtype=object)
    sense = np.hstack([encoder.encode(texts), np.array([surface(text) for text in texts])])
    guesses = {
        "letters and words": guess(written, by_letters(), np.array(texts, dtype=object), seed),
        "MiniLM and surface": guess(written, by_sense(), sense, seed),
    }
    if more:
        guesses["and more to learn from"] = guess(
            written, by_letters(), np.array(texts, dtype=object), seed, more
        )
    if len(set(clear)) > len(written) / 2:  # else each is there by both hands
        guesses["clear forms alone"] = guess(written, by_letters(), clear, seed)
    return guesses


def _table(runs: Sequence[dict[str, Guesses]]) -> str:
    names = list(runs[0])
    rows = [
        ["accuracy", *(f"{np.mean([run[name].accuracy for run in runs]):.2f}" for name in names)],
        [
            "area under the curve",
            *(f"{np.mean([run[name].area for run in runs]):.2f}" for name in names),
        ],
    ]
    for style in runs[0][names[0]].by_style:
        areas = [np.mean([run[name].by_style[style] for run in runs]) for name in names]
        rows.append([f"  {style}", *(f"{area:.2f}" for area in areas)])
    return layout([["", *names], *rows])


def _telling(written: Sequence[Written], count: int) -> list[str]:
    model = by_letters().fit([row.text for row in written], [row.generated for row in written])
    weights = model[-1].coef_[0]
    names = model[0].get_feature_names_out()
    order = np.argsort(weights)
    return [
        f"{title}: " + " ".join(repr(names[i].split("__")[1]) for i in places)
        for title, places in (("by hand", order[:count]), ("generated", order[::-1][:count]))
    ]


def _regression(strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, class_weight="balanced", max_iter=2000)


def _pair(hand: str, made: str, style: str, meaning: str, clear: str) -> list[Written]:
    return [
        Written(text, style, meaning, generated, clear)
        for text, generated in ((hand, False), (made, True))
    ]


def _questions(split: str) -> dict[str, Question]:
    return {question.id: question for question in load_questions() if question.split == split}


def _twins() -> list[dict[str, str]]:
    lines = DEFAULT_FILE.with_name("twins.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main()
