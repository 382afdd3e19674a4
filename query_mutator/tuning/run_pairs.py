"""What a run has found out: rewrites that ask the same and were answered better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from query_mutator.base.errors import UserError
from query_mutator.data import load_questions
from query_mutator.environment.transition import Transition
from query_mutator.models.encoders import Encoder, load_encoder
from query_mutator.objectives.drift.detector import shipped_detector
from query_mutator.runs.directory import TRANSITIONS
from query_mutator.runs.transitions import read_transitions
from query_mutator.tuning.pairs import Pair

LEAST_GAIN = 0.05
"""A smaller rise of the score is mostly chance."""
MOST_DRIFT = 0.2
"""As in training (`--drift-threshold`): a rewrite up to it asks the same."""
WEIGHTS = 0.25, 4.0
"""What the weights are kept within; their mean is about 1."""


def gain_pairs(run: str | Path, encoder: Encoder) -> list[Pair]:
    """The faithful rewrites of a run that gained, weighted by their gain.

    Of a rewrite that was tried several times the mean counts. A run logs training questions alone.
    """
    if not (Path(run) / TRANSITIONS).is_file():
        raise UserError(f"--from {run}: that is no run (it holds no {TRANSITIONS})")
    gains: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    asked: dict[str, str] = {}
    for step in read_transitions(run):
        if is_rewrite(step) and step.tried_score is not None:
            gains[step.original_query, step.rewritten_question].append(
                step.tried_score - step.previous_score
            )
            asked[step.original_query] = step.question_id
    means = {pair: float(np.mean(found)) for pair, found in gains.items()}
    gained = [pair for pair, gain in means.items() if gain >= LEAST_GAIN]
    faithful = faithful_of(gained, encoder)
    if not faithful:
        return []
    usual = float(np.mean([means[pair] for pair in faithful]))
    meanings = {question.id: question.meaning for question in load_questions()}
    return [
        Pair(
            question,
            rewrite,
            # As shipped pairs have it; of a file of one's own, the id tells questions apart.
            meanings.get(asked[question], asked[question]),
            float(np.clip(means[question, rewrite] / usual, *WEIGHTS)),
        )
        for question, rewrite in faithful
    ]


def pairs_of_runs(runs: Sequence[str]) -> list[Pair]:
    """Those of several runs; `UserError` where there is nothing to learn."""
    encoder = load_encoder()
    pairs = [pair for run in runs for pair in gain_pairs(run, encoder)]
    if not pairs:
        raise UserError(
            f"--from {' '.join(runs)}: no rewrite there asked the same and gained {LEAST_GAIN:g} "
            "or more.\nGive another run, or leave --from out and learn from the shipped pairs"
        )
    return pairs


def is_rewrite(step: Transition) -> bool:
    """Whether the question itself was put in other words, at once, and all went well."""
    return (
        not step.failed
        and not step.refused_rewrite
        and step.query == step.original_query
        and step.rewritten_question.strip() not in ("", step.original_query.strip())
    )


def faithful_of(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> list[tuple[str, str]]:
    if not pairs:
        return []
    questions, rewrites = zip(*pairs, strict=True)
    drifts = shipped_detector().find(questions, rewrites, encoder.encode)
    return [pair for pair, drift in zip(pairs, drifts, strict=True) if drift.value <= MOST_DRIFT]
