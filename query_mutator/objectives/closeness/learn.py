"""Learns by which words a reference makes its point, from the key facts of the training questions.

`python -m query_mutator.objectives.closeness.learn` writes weights.json beside it: the same
questions give the same weights.
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
from query_mutator.english.facts.tokens import is_among, words_of
from query_mutator.objectives.closeness.measure import WEIGHTS_FILE
from query_mutator.objectives.closeness.reference import (
    POINT_FEATURES,
    point_features,
    words_added,
    words_asked,
    words_said,
)

QUESTIONS = Path(__file__).parents[2] / "data" / "questions.jsonl"
Numbers = npt.NDArray[np.float64]


def fit(rows: Numbers, labels: Sequence[bool]) -> Numbers:
    """The weights of a logistic regression, the first column being 1; learned at equal scales."""
    from sklearn.linear_model import LogisticRegression

    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    centre[0], scale[0] = 0.0, 1.0
    scale[scale == 0] = 1.0
    model = LogisticRegression(max_iter=5000).fit(((rows - centre) / scale)[:, 1:], labels)
    weights = np.concatenate([[0.0], model.coef_[0] / scale[1:]])
    weights[0] = model.intercept_[0] - weights @ centre
    return weights


def learn(questions: Sequence[dict[str, Any]]) -> Numbers:
    """Weights of `POINT_FEATURES`: does a word of a reference belong to a key fact?"""
    rows, labels = [], []
    for question in questions:
        said = words_said(question["reference"])
        asked = words_asked(question["question"])
        places = words_added(said, question["question"], asked)
        of_facts = words_of(" ".join(text for fact in question["key_facts"] for text in fact))
        rows.append(point_features(said, places, asked))
        labels += [is_among(said[place].text, of_facts) for place in places]
    return fit(np.vstack(rows), labels)


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(
        prog="python -m query_mutator.objectives.closeness.learn", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    args = parser.parse_args(argv)
    if not importlib.util.find_spec("sklearn"):
        raise UserError("scikit-learn is not installed: pip install -r requirements-dev.txt")
    rows = [parse_json(line) for line in read_lines(QUESTIONS, "the questions")]
    weights = learn([row for row in rows if row["split"] == "train"])
    named = {
        name: round(float(weight), 4) for name, weight in zip(POINT_FEATURES, weights, strict=True)
    }
    args.out.write_text(json.dumps(named, indent=2) + "\n", encoding="utf-8")
    return 0


main = as_main(run)

if __name__ == "__main__":
    raise SystemExit(main())
