"""Tasks made of an evaluation: what every operator was worth for every question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.learning.tasks import Task, observations_of
from query_mutator.base.errors import UserError
from query_mutator.base.stored import stored_as
from query_mutator.environment.episodes import EpisodeView, opening_state
from query_mutator.evaluation.measuring import UNCHANGED, Measured
from query_mutator.models.encoders import load_encoder

HELD_OUT = 3
"""One question in so many is held out."""
FEWEST = 30


@dataclass(frozen=True)
class MeasuredQuestions:
    """What the policy sees of each question, and what each operator gained on it."""

    observations: npt.NDArray[np.float32]
    gains: npt.NDArray[np.float64]


def load_measured(file: Path) -> MeasuredQuestions:
    """The questions in `records.jsonl` of an evaluation; those with a failure are left out."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
        records = [stored_as(Measured, json.loads(line)) for line in lines]
        records = [record for record in records if not record.failure]
        names = sorted(records[0].ways, key=lambda name: name != UNCHANGED) if records else []
        scores = np.array([[record.ways[name].score for name in names] for record in records])
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, KeyError, RecursionError) as error:
        raise UserError(f"{file} is not the records.jsonl of an evaluation") from error
    if len(records) < FEWEST:
        raise UserError(f"{file} has {len(records)} measured questions; {FEWEST} are needed")
    opened = [record.ways[UNCHANGED] for record in records]
    states = [
        opening_state(one.question, first.answer, cut=first.cut, max_rewrites=1)
        for one, first in zip(records, opened, strict=True)
    ]
    view = EpisodeView(len(names) - 1, 1)
    observations = observations_of(states, view, load_encoder())
    return MeasuredQuestions(observations, scores - scores[:, :1])


def parted(measured: MeasuredQuestions, seed: int) -> Task:
    """The task of learning on some of the questions; answers are fixed, so there is no noise."""
    order = np.random.default_rng([seed, 4]).permutation(len(measured.gains))
    heldout = len(order) // HELD_OUT
    return Task(measured.observations, measured.gains, 0.0, order[heldout:], order[:heldout])
