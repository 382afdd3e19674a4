"""Learns the weights of the refusal detector from the labelled answers in data/refusals/train.

`python -m query_mutator.objectives.refusal.learn` writes weights.npz beside it: the same files
give the same weights. It prints precision and recall on the answers of each author ("hand") by a
model that was learned on the others.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import OneLineParser, as_main
from query_mutator.models.encoders import load_encoder
from query_mutator.objectives.refusal.detector import KINDS, PROBE, WEIGHTS_FILE, WORDS
from query_mutator.objectives.refusal.features import (
    Vectors,
    dense_features,
    hashed_words,
    weighted,
)
from query_mutator.objectives.refusal.labelled import LABELLED, LABELS, read_labelled, report
from query_mutator.objectives.refusal.rules import known_probability, without_markup

TRAIN_FILES = LABELLED / "train"
ONLY_LEARNED = "small_model"
"""Replies of a small model, all of them answers: they say nothing about recall."""
WANTED_PRECISION = 0.975
PENALTY = 0.1
RAREST = 2
"""Buckets with words of fewer answers are left out."""


def rarity_of(words: Vectors) -> Vectors:
    """The logarithm of how rare each bucket is, 0 where it is too rare to learn from."""
    count = (words > 0).sum(axis=0)
    rarity = np.log((1 + len(words)) / (1 + count)) + 1
    return np.where(count >= RAREST, rarity, 0.0).astype(np.float32)


def fit(rows: Vectors, labels: Sequence[Any] | npt.NDArray[Any]) -> Any:
    """A linear model of the labels."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1 / PENALTY, max_iter=5000).fit(rows, labels)


def left_out_probabilities(
    dense: Vectors, words: Vectors, refused: npt.NDArray[Any], hands: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """How probable a refusal is, by a model that has seen no answer of the same hand."""
    probability = np.zeros(len(hands))
    for hand in sorted(set(hands) - {ONLY_LEARNED}):
        others = hands != hand
        rows = np.hstack([dense, WORDS * weighted(words, rarity_of(words[others]))])
        model = fit(rows[others], refused[others])
        probability[~others] = model.predict_proba(rows[~others])[:, 1]
    return probability


def lowest_threshold(refused: npt.NDArray[Any], probability: npt.NDArray[Any]) -> float:
    """The lowest probability from which on the precision is as wanted."""
    order = np.argsort(-probability, kind="stable")
    precision = np.cumsum(refused[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(precision >= WANTED_PRECISION)
    return float(probability[order[good[-1]]]) if len(good) else 1.0


def learn(rows: Sequence[dict[str, Any]]) -> tuple[dict[str, npt.NDArray[Any]], str]:
    """The weights, and how well they do on hands that were left out."""
    encode = load_encoder().encode_each
    questions, answers, kinds = (
        [row[name] for row in rows] for name in ("question", "answer", "kind")
    )
    hands = np.array([row["hand"] for row in rows])
    refused = np.array([row["label"] == "refusal" for row in rows])
    dense, words = dense_features(questions, answers, encode), hashed_words(answers)
    probability = left_out_probabilities(dense, words, refused, hands)
    for place, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        known = known_probability(question, without_markup(answer))
        probability[place] = probability[place] if known is None else known
    judged = hands != ONLY_LEARNED
    threshold = lowest_threshold(refused[judged], probability[judged])
    found = report([row for row in rows if row["hand"] != ONLY_LEARNED],
                   list(probability[judged] >= threshold))  # fmt: skip
    rarity = rarity_of(words)
    features = np.hstack([dense, WORDS * weighted(words, rarity)])
    model = fit(features, refused)
    by_kind = fit(features[refused], [KINDS.index(kind) for kind in np.array(kinds)[refused]])
    weights = {
        "refusal": model.coef_[0].astype(np.float16),
        "bias": model.intercept_[0].astype(np.float32),
        "kinds": by_kind.coef_.astype(np.float16),
        "kind_biases": by_kind.intercept_.astype(np.float32),
        "rarity": rarity.astype(np.float16),
        "threshold": np.float32(threshold),
        "probe": encode([PROBE])[0].astype(np.float16),
    }
    return weights, f"threshold {threshold:.3f}, hands left out one at a time:\n{found}"


def check_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Raises `UserError` where there is too little to learn from."""
    kinds = {row["kind"] for row in rows if row["label"] == "refusal"}
    if unknown := kinds - set(KINDS):
        raise UserError(f"a refusal is {', '.join(KINDS)}; not '{min(unknown)}'")
    if missing := set(KINDS) - kinds:
        raise UserError(f"there is no refusal of kind {', '.join(sorted(missing))} to learn from")
    hands = {row["hand"] for row in rows} - {ONLY_LEARNED}
    if len(hands) < 2:
        raise UserError("each hand is judged by a model of the others: name two files or more")
    for hand in sorted(hands):
        if len({row["label"] for row in rows if row["hand"] != hand}) < len(LABELS):
            raise UserError(f"without {hand} there are not both refusals and answers")


def check_can_write(file: Path) -> None:
    """Raises `UserError` where a file cannot be written; leaves what is there as it is."""
    place = file if file.exists() else file.parent
    if file.is_dir() or not file.parent.is_dir() or not os.access(place, os.W_OK):
        raise UserError(f"cannot write {file}; name another file by --out")


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(
        prog="python -m query_mutator.objectives.refusal.learn", description=__doc__
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    args = parser.parse_args(argv)
    if not importlib.util.find_spec("sklearn"):
        raise UserError("scikit-learn is not installed: pip install -r requirements-dev.txt")
    rows = read_labelled(args.files or sorted(TRAIN_FILES.glob("*.jsonl")))
    check_rows(rows)
    check_can_write(args.out)
    weights, found = learn(rows)
    with args.out.open("wb") as file:
        np.savez_compressed(file, **weights)  # type: ignore[arg-type]
    print(found)
    return 0


main = as_main(run)

if __name__ == "__main__":
    raise SystemExit(main())
