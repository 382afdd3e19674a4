"""Learns by which words a reference makes its point, and when an answer gives it.

`python -m query_mutator.objectives.closeness.learn` writes weights.json beside it: the same files
give the same weights. The words that are the point are learned from the key facts of the training
questions; when they are given as the answer, from the answers labelled by hand in
data/answers/dev*.jsonl. It prints the area under the curve on the answers of each file ("hand")
by weights that were learned on the others, and on questions that were left out.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import OneLineParser, as_main
from query_mutator.base.untrusted import parse_json, read_lines
from query_mutator.models.encoders import load_encoder
from query_mutator.objectives.closeness.measure import WEIGHTS_FILE, likeness_to_the_point
from query_mutator.objectives.closeness.reference import (
    POINT_FEATURES,
    asked_words,
    beyond_question,
    point_features,
    words_added,
)
from query_mutator.objectives.closeness.saying import (
    SAYING_FEATURES,
    read_answer,
    saying_features,
)
from query_mutator.objectives.closeness.tokens import singular, tokens

DATA = Path(__file__).parents[2] / "data"
PENALTY_OF_POINT, PENALTY_OF_SAYING = 1.0, 3.0
PARTS = 5
Numbers = npt.NDArray[np.float64]


def fit(rows: Numbers, labels: Sequence[bool] | npt.NDArray[np.bool_], penalty: float) -> Numbers:
    """The weights of a logistic regression, the first column being 1; learned at equal scales."""
    from sklearn.linear_model import LogisticRegression

    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    centre[0], scale[0] = 0.0, 1.0
    scale[scale == 0] = 1.0
    model = LogisticRegression(C=1 / penalty, max_iter=5000, fit_intercept=True)
    model.fit(((rows - centre) / scale)[:, 1:], labels)
    weights = np.concatenate([[0.0], model.coef_[0] / scale[1:]])
    weights[0] = model.intercept_[0] - weights @ centre
    return weights


def learn_point(questions: Sequence[dict[str, Any]]) -> Numbers:
    """Weights of `POINT_FEATURES`: does a word of a reference belong to a key fact?"""
    rows, labels = [], []
    for row in questions:
        said = tokens(row["reference"])
        asked = asked_words(row["question"])
        places, _ = words_added(said, row["question"], asked)
        facts = {
            singular(token.word)
            for fact in row["key_facts"]
            for alternative in fact
            for token in tokens(alternative)
        }
        rows.append(point_features(said, places, asked))
        labels += [singular(said[place].word) in facts for place in places]
    return fit(np.vstack(rows), labels, PENALTY_OF_POINT)


def answers_with_the_point(
    rows: Sequence[dict[str, Any]], questions: dict[str, dict[str, Any]], point: Numbers
) -> tuple[list[int], Numbers]:
    """The answers that mention the point, and their `SAYING_FEATURES`."""
    weights = tuple(point.tolist())
    sayings = [
        read_answer(
            row["answer"],
            beyond_question(row["question"], questions[row["id"]]["reference"], weights),
        )
        for row in rows
    ]
    likeness = likeness_to_the_point(sayings, load_encoder().encode)
    chosen = [place for place, saying in enumerate(sayings) if saying.point is not None]
    return chosen, np.array([saying_features(sayings[i], likeness[i]) for i in chosen])


def left_out(features: Numbers, right: npt.NDArray[np.bool_], groups: Sequence[str]) -> Numbers:
    """How probably each is right, by weights learned without its group."""
    probability = np.zeros(len(right))
    names = np.array(groups)
    for name in sorted(set(groups)):
        held = names == name
        weights = fit(features[~held], right[~held], PENALTY_OF_SAYING)
        probability[held] = 1 / (1 + np.exp(-features[held] @ weights))
    return probability


def report(features: Numbers, right: npt.NDArray[np.bool_], rows: Sequence[dict[str, Any]]) -> str:
    """The area under the curve among answers with the point, hands and questions left out."""
    from sklearn.metrics import roc_auc_score

    hands = [row["hand"] for row in rows]
    by_hand = left_out(features, right, hands)
    order = {name: place % PARTS for place, name in enumerate(sorted({row["id"] for row in rows}))}
    by_question = left_out(features, right, [str(order[row["id"]]) for row in rows])
    lines = [f"questions left out: {roc_auc_score(right, by_question):.3f} of {len(right)}"]
    for hand in sorted(set(hands)):
        part = np.array(hands) == hand
        area = roc_auc_score(right[part], by_hand[part])
        lines.append(f"{hand}, by the others: {area:.3f} of {part.sum()}")
    return "\n".join(lines)


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file, with the file's name as `hand`."""
    return [{**parse_json(line), "hand": file.stem} for line in read_lines(file, "the answers")]


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(
        prog="python -m query_mutator.objectives.closeness.learn", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    args = parser.parse_args(argv)
    if not importlib.util.find_spec("sklearn"):
        raise UserError("scikit-learn is not installed: pip install -r requirements-dev.txt")
    questions = {row["id"]: row for row in read_rows(DATA / "questions.jsonl")}
    files = sorted((DATA / "answers").glob("dev*.jsonl"))
    rows = [row for file in files for row in read_rows(file)]
    point = learn_point([row for row in questions.values() if row["split"] == "train"])
    chosen, features = answers_with_the_point(rows, questions, point)
    right = np.array([rows[place]["right"] for place in chosen])
    saying = fit(features, right, PENALTY_OF_SAYING)
    learned = {"point": _named(POINT_FEATURES, point), "saying": _named(SAYING_FEATURES, saying)}
    args.out.write_text(json.dumps(learned, indent=2) + "\n", encoding="utf-8")
    print(report(features, right, [rows[place] for place in chosen]))
    return 0


def _named(names: Sequence[str], weights: Numbers) -> dict[str, float]:
    return {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)}


main = as_main(run)

if __name__ == "__main__":
    raise SystemExit(main())
