"""Picks a shipped objective, or loads a user's `file.py:name`."""

from __future__ import annotations

import difflib
import importlib.util
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from errors import UserError
from objectives.answer import make_answer_objective
from objectives.base import Batch, Objective, Score, Term, Weights

OBJECTIVES: dict[str, Callable[[Weights], Objective]] = {"answer": make_answer_objective}


def load_objective(name: str, weights: Weights) -> Objective:
    """The objective a user named; a user's function may return plain numbers."""
    if ".py:" in name:
        return _checked(_function_from_file(name), name)
    if name not in OBJECTIVES:
        near = difflib.get_close_matches(name, OBJECTIVES, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UserError(
            f"no objective '{name}': {hint}There are: {', '.join(OBJECTIVES)}, or file.py:name"
        )
    return OBJECTIVES[name](weights)


def _function_from_file(name: str) -> Callable[[Batch], Sequence[Any]]:
    path, _, function_name = name.rpartition(":")
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"--objective {name}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises
        raise UserError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UserError(f"{file} has no function '{function_name}'")
    checked: Callable[[Batch], Sequence[Any]] = function
    return checked


def _checked(function: Callable[[Batch], Sequence[Any]], name: str) -> Objective:
    def objective(batch: Batch) -> list[Score]:
        try:
            results = list(function(batch))
        except Exception as error:  # whatever the user's function raises
            raise UserError(f"objective {name} failed: {type(error).__name__}: {error}") from error
        if len(results) != len(batch.answers):
            raise UserError(
                f"objective {name} gave {len(results)} scores for {len(batch.answers)} answers"
            )
        return [_as_score(result, name) for result in results]

    return objective


def _as_score(result: Any, name: str) -> Score:
    if isinstance(result, int | float):
        result = Score({"score": Term(float(result))})
    if not isinstance(result, Score) or not math.isfinite(result.total):
        raise UserError(f"objective {name} must give numbers or Scores, not {result!r}")
    return result
