"""Tasks made of a table of operators, and such where doing nothing is best."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.learning.tasks import Task, observe, split_rows
from benchmarks.operator_table.rows import Rows, read_table
from query_mutator.base.errors import UserError
from query_mutator.data import load_questions
from query_mutator.operators import load_operators

FEWEST = 10
"""Questions of either split: with fewer there is nothing to learn from, or to judge by."""
WORTH = {"none": 0.0, "harm": -0.1}
"""What every operator is worth on every question, by the name of the task."""
NOISE = 0.3
"""Deviation of a reward around it: about as much as the gain of an operator varies."""


def load_table_task(file: Path) -> Task:
    """The questions of a table: trained on those of its split train, judged on the others.

    Answers are as they were, so a question has the same reward each time.
    """
    table = read_table(file)
    train, heldout = _rows_by_split(table, file)
    gains = np.concatenate([np.zeros((len(table.rows), 1)), table.gains()], axis=1)
    return Task(_observations(table), gains, 0.0, train, heldout, in_turns=True)


def task_of_no_use(kind: str, file: Path | None = None, dataset: str | None = None) -> Task:
    """The questions of a table, or of a dataset (the shipped), where no operator does any good.

    All are worth nothing there (`none`) or do harm (`harm`), and rewards are noisy.
    """
    if file is not None:
        table = read_table(file)
        observations, operators = _observations(table), len(table.operators)
        train, heldout = _rows_by_split(table, file)
    else:
        questions = load_questions(dataset)
        observations, operators = observe(questions).observations, len(load_operators())
        train, heldout = split_rows(questions)
    worth = np.full((len(observations), operators + 1), WORTH[kind])
    worth[:, 0] = 0.0
    return Task(observations, worth, NOISE, train, heldout, in_turns=True)


def _observations(table: Rows) -> npt.NDArray[np.float32]:
    return np.array([row.observation for row in table.rows], np.float32)


def _rows_by_split(table: Rows, file: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    is_train = np.array([row.split == "train" for row in table.rows], bool)
    train, heldout = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    if min(len(train), len(heldout)) < FEWEST:
        raise UserError(
            f"{file} has {len(train)} questions to train on and {len(heldout)} held out; "
            f"{FEWEST} of each are needed.\nGo on with it: python -m benchmarks.operator_table "
            f"--output {file} --split all"
        )
    return train, heldout
