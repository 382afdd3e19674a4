"""Learns the weights of drift from labelled rewrites, twins, and changes made by rules.

    python -m benchmarks.scoring.drift_learn           # writes objectives/drift/weights.npz
    python -m benchmarks.scoring.drift_learn --dry-run  # only says how well it does

It prints how well models do that were learned on other questions; held-out questions and
`rewrites/test.jsonl` are not read.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.scoring.drift_pairs import (
    CLEAN_UP,
    MADE,
    MESSED_UP,
    Labelled,
    made,
    rewrites,
    turned,
    twins,
)
from benchmarks.scoring.drift_table import table
from query_mutator.base.terminal import OneLineParser
from query_mutator.english.spelling import word_counts
from query_mutator.models.encoders import load_encoder
from query_mutator.objectives.drift.compared import LEFT_OUT, PUT_IN, compare
from query_mutator.objectives.drift.detector import (
    CALIBRATED,
    MOST_SCALES,
    WEIGHTS_FILE,
    cosine_numbers,
    row_of,
    vectors_of,
)
from query_mutator.objectives.drift.meanings import Meanings, mean_of_pieces
from query_mutator.objectives.drift.pair import Pair
from query_mutator.objectives.refusal.detector import PROBE

Rows = npt.NDArray[np.float32]

FOLDS = 5
FEW, MANY = ("dev", "train", "train_2"), ("train_3", "train_4", "train_5", "train_6")
"""Files of labelled rewrites; of the latter, each question has four."""
TO_LEARN = (*FEW, *MANY)
WEIGHT_OF = {"twins": 1.0, "turned": 0.5, "made": 0.4}
WEIGHT_OF |= dict.fromkeys(FEW, 3.0) | dict.fromkeys(MANY, 1.0)
"""How much a pair counts, by its source."""
MADE_PAIRS = 9500
FEWEST_QUESTIONS = 4
"""Numbers and words that fewer questions have are left out."""
OF_LISTS = ("opposite", "opposite, core", "other of its kind", "of a kind asked")
HIDDEN_LISTS = 0.6
FREE_TWINS = 0.955
"""Share of twins, of clean-ups as of the other way, that are to cost nothing."""
WORDS, TURNED_WIDTH = 9000, 128
"""Words by which the meanings of words are learned, and the width of a vector."""
NETWORKS, HIDDEN, PASSES, BATCH = 5, 64, 25, 64
LEARNING_RATE, DECAY, WIDE_DECAY, LEAST_SCALE = 2e-3, 0.03, 0.1, 0.1


@dataclass(frozen=True)
class Learned:
    """A model: weights of all numbers, and networks over those that stand for no single word."""

    centre: Rows
    scale: Rows
    wide: Rows
    bias: float
    inner: Rows
    inner_bias: Rows
    outer: Rows

    def scores(self, rows: Rows) -> npt.NDArray[np.float64]:
        """The logit of each row."""
        dense = (rows[:, : self.centre.size] - self.centre) / self.scale
        dense = np.clip(dense, -MOST_SCALES, MOST_SCALES)
        total = rows @ self.wide + self.bias
        for inner, bias, outer in zip(self.inner, self.inner_bias, self.outer, strict=True):
            total = total + np.maximum(dense @ inner + bias, 0.0) @ outer
        return np.asarray(total, np.float64)


def main(argv: Sequence[str] | None = None) -> None:
    """Learns, says how well, and writes."""
    parser = OneLineParser(prog="python -m benchmarks.scoring.drift_learn", description=__doc__)
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE)
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    args = parser.parse_args(argv)
    found = left_out()
    print(f"threshold {found.threshold:.2f}, of {len(found.pairs)} pairs; each question by a model "
          "of others:")  # fmt: skip
    for source in TO_LEARN:
        print(table([(pair, value) for pair, value in zip(found.pairs, found.values, strict=True)
                     if pair.source in ("twins", source)]))  # fmt: skip
    if not args.dry_run:
        model = fit(found.rows, found.pairs, found.dense, seed=0)
        write(args.out, model, found)


@dataclass(frozen=True)
class LeftOut:
    """What there is to learn from, and the drift of each pair by a model of other questions."""

    pairs: list[Labelled]
    rows: Rows
    names: list[str]
    dense: int
    """How many of the names stand for no single word."""
    mean: Rows
    turn: Rows
    threshold: float
    values: npt.NDArray[np.float64]


def left_out() -> LeftOut:
    """Each question judged by a model that was learned on the others."""
    torch.set_num_threads(1)
    mean, turn = learn_meanings()
    pairs = pairs_to_learn_from()
    numbers = numbers_of(pairs, Meanings(mean.astype(np.float32), turn.astype(np.float32)))
    names, dense = names_of(pairs, numbers)
    places = {name: place for place, name in enumerate(names)}
    hide_lists(pairs, numbers)
    rows = np.stack([row_of(row, places) for row in numbers])
    scores = left_out_scores(pairs, rows, dense)
    threshold = threshold_of(pairs, scores)
    values = drifts(scores, threshold)
    return LeftOut(pairs, rows, names, dense, mean, turn, threshold, values)


def pairs_to_learn_from() -> list[Labelled]:
    """Everything that is not held out."""
    clean = list(twins("train"))
    made_pairs = made()
    chosen = np.random.default_rng(0).permutation(len(made_pairs))[:MADE_PAIRS]
    by_hand = [pair for part in TO_LEARN for pair in rewrites(part)]
    some_made = [made_pairs[place] for place in sorted(chosen)]
    return [*clean, *turned(clean), *by_hand, *some_made]


def numbers_of(pairs: Sequence[Labelled], meanings: Meanings) -> list[dict[str, float]]:
    """What is weighed of each pair."""
    compared = [Pair.of(pair.question, pair.rewrite) for pair in pairs]
    vectors = vectors_of(compared, load_encoder().encode_each)
    return [compare(pair, meanings).numbers | cosine_numbers(pair, vectors) for pair in compared]


def hide_lists(pairs: Sequence[Labelled], numbers: Sequence[dict[str, float]]) -> None:
    """Hides in many made pairs what the lists of words say, as it was by them that they were made.

    Else a word exchanged for one that is in no list would look as if nothing had changed.
    """
    generator = np.random.default_rng(0)
    for pair, row in zip(pairs, numbers, strict=True):
        if pair.source == MADE and generator.random() < HIDDEN_LISTS:
            row |= dict.fromkeys(OF_LISTS, 0.0)


def names_of(
    pairs: Sequence[Labelled], numbers: Sequence[dict[str, float]]
) -> tuple[list[str], int]:
    """The names of what is learned from, single words last, and how many are no words."""
    questions = defaultdict(set)
    for pair, row in zip(pairs, numbers, strict=True):
        for name, value in row.items():
            if value:
                questions[name].add(pair.id)
    kept = [name for name, ids in questions.items() if len(ids) >= FEWEST_QUESTIONS]
    words = sorted(name for name in kept if name[0] in (PUT_IN, LEFT_OUT))
    others = sorted(set(kept) - set(words))
    return others + words, len(others)


def left_out_scores(pairs: Sequence[Labelled], rows: Rows, dense: int) -> npt.NDArray[np.float64]:
    """Scores of each question's pairs by a model that has seen none of them."""
    folds = np.array([zlib.crc32(pair.id.encode()) % FOLDS for pair in pairs])
    scores = np.zeros(len(pairs))
    for fold in range(FOLDS):
        inside = np.flatnonzero(folds != fold)
        model = fit(rows[inside], [pairs[int(place)] for place in inside], dense, seed=fold)
        scores[folds == fold] = model.scores(rows[folds == fold])
    return scores


def threshold_of(pairs: Sequence[Labelled], scores: npt.NDArray[np.float64]) -> float:
    """The score that the wanted share of twins stays below, either way."""
    kinds = np.array([pair.kind if pair.source == "twins" else "" for pair in pairs])
    ways = (scores[kinds == kind] for kind in (CLEAN_UP, MESSED_UP))
    return max(float(np.quantile(way, FREE_TWINS, method="higher")) for way in ways)


def drifts(scores: npt.NDArray[np.float64], threshold: float) -> npt.NDArray[np.float64]:
    """Scores on the scale of drift, where the threshold is `CALIBRATED`."""
    calibrated = np.log(CALIBRATED / (1 - CALIBRATED))
    return np.asarray(1 / (1 + np.exp(-(scores - threshold + calibrated))))


def fit(rows: Rows, pairs: Sequence[Labelled], dense: int, *, seed: int) -> Learned:
    """The weights and the networks, each network learned with weights of its own."""
    changed = torch.tensor([float(pair.changed) for pair in pairs])
    weight = torch.tensor([WEIGHT_OF[pair.source] for pair in pairs])
    centre = rows[:, :dense].mean(axis=0)
    scale = np.maximum(rows[:, :dense].std(axis=0), LEAST_SCALE)
    inputs = torch.from_numpy(
        np.clip((rows[:, :dense] - centre) / scale, -MOST_SCALES, MOST_SCALES)
    )
    everything = torch.from_numpy(rows)
    fitted = [
        _fit_one(everything, inputs, changed, weight, seed * NETWORKS + number)
        for number in range(NETWORKS)
    ]
    average = 1 / NETWORKS
    return Learned(
        centre,
        scale,
        wide=sum(one["wide.weight"][0] for one in fitted) * average,
        bias=float(sum(one["wide.bias"][0] + one["deep.4.bias"][0] for one in fitted) * average),
        inner=np.stack([one["deep.1.weight"].T for one in fitted]),
        inner_bias=np.stack([one["deep.1.bias"] for one in fitted]),
        outer=np.stack([one["deep.4.weight"][0] * average for one in fitted]),
    )


class _Model(torch.nn.Module):
    def __init__(self, numbers: int, dense: int) -> None:
        super().__init__()
        self.wide = torch.nn.Linear(numbers, 1)
        torch.nn.init.zeros_(self.wide.weight)
        self.deep = torch.nn.Sequential(
            torch.nn.Dropout(0.15), torch.nn.Linear(dense, HIDDEN), torch.nn.ReLU(),
            torch.nn.Dropout(0.4), torch.nn.Linear(HIDDEN, 1),
        )  # fmt: skip

    def forward(self, everything: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.wide(everything) + self.deep(inputs)
        return scores[:, 0]


def _fit_one(
    everything: torch.Tensor,
    inputs: torch.Tensor,
    changed: torch.Tensor,
    weight: torch.Tensor,
    seed: int,
) -> dict[str, Any]:
    torch.manual_seed(seed)
    model = _Model(everything.shape[1], inputs.shape[1])
    groups = [
        {"params": model.wide.parameters(), "weight_decay": WIDE_DECAY},
        {"params": model.deep.parameters(), "weight_decay": DECAY},
    ]
    optimiser = torch.optim.AdamW(groups, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, PASSES)
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    for _ in range(PASSES):
        for chosen in torch.randperm(len(changed)).split(BATCH):
            scores = model(everything[chosen], inputs[chosen])
            loss = loss_of(scores, changed[chosen], weight=weight[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        schedule.step()
    model.eval()
    return {name: value.numpy() for name, value in model.state_dict().items()}


def learn_meanings() -> tuple[Rows, Rows]:
    """The mean of words' input vectors, and what turns them to the model's own embeddings."""
    counts = word_counts()
    words = [word for word in sorted(counts, key=lambda word: -counts[word]) if len(word) > 2][
        :WORDS
    ]
    inputs = np.stack([mean_of_pieces(word) for word in words])
    outputs = _unit(_centred(load_encoder().encode(words)))
    mean = inputs.mean(axis=0)
    rows = _unit(inputs - mean)
    axes = np.linalg.svd(outputs, full_matrices=False)[2][:TURNED_WIDTH]
    square = rows.T @ rows + np.eye(rows.shape[1], dtype=np.float32)
    turn = np.linalg.solve(square, rows.T @ (outputs @ axes.T))
    return mean.astype(np.float16), turn.astype(np.float16)


def _centred(rows: Rows) -> Rows:
    return np.asarray(rows - rows.mean(axis=0))


def _unit(rows: Rows) -> Rows:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def write(file: Path, model: Learned, found: LeftOut) -> None:
    """Writes what the detector reads; the threshold is put into the bias."""
    calibrated = float(np.log(CALIBRATED / (1 - CALIBRATED)))
    arrays: dict[str, Any] = {
        "names": np.array(found.names),
        "centre": model.centre,
        "scale": model.scale,
        "wide": model.wide.astype(np.float16),
        "bias": np.float32(model.bias - found.threshold + calibrated),
        "inner": model.inner.astype(np.float16),
        "inner_bias": model.inner_bias.astype(np.float16),
        "outer": model.outer.astype(np.float16),
        "mean": found.mean,
        "turn": found.turn,
        "probe": load_encoder().encode_each([PROBE])[0].astype(np.float16),
    }
    with file.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


if __name__ == "__main__":
    main()
