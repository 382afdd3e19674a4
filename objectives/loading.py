"""Picks a shipped objective, or loads a user's `file.py:name`."""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from errors import UserError
from objectives.answer import make_answer_objective
from objectives.base import Batch, Objective, Score, Term, Weights

LARGEST_SCORE = 1e6

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
    file = Path(os.path.expanduser(path))
    if not file.is_file():
        raise UserError(f"--objective {name}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"{file} cannot be loaded: {type(error).__name__}: {reason}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UserError(f"{file} has no function '{function_name}'")
    checked: Callable[[Batch], Sequence[Any]] = function
    return checked


def _checked(function: Callable[[Batch], Sequence[Any]], name: str) -> Objective:
    def objective(batch: Batch) -> list[Score]:
        try:
            results = list(function(batch))
        except (Exception, SystemExit) as error:  # whatever the user's function raises
            raise _misbehaves(name, f"failed: {type(error).__name__}: {error}") from error
        if len(results) != len(batch.answers):
            raise UserError(
                f"objective {name} gave {len(results)} scores for {len(batch.answers)} answers"
            )
        return [_as_score(result, name) for result in results]

    return objective


def _as_score(result: Any, name: str) -> Score:
    """A score of plain numbers, from what a user's function gave (numpy's and torch's are fine)."""
    try:
        terms = result.terms if isinstance(result, Score) else {"score": Term(float(result))}
        score = Score(
            {
                str(key): Term(float(term.value), str(term.why), float(term.weight))
                for key, term in terms.items()
            }
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise _misbehaves(name, f"must give numbers or Scores, not {result!r}") from error
    if not abs(score.total) <= LARGEST_SCORE:
        raise _misbehaves(name, f"gave {score.total}, not a number within ±{LARGEST_SCORE:g}")
    return score


def _misbehaves(name: str, what: str) -> UserError:
    return UserError(f"objective {name} " + " ".join(what.split())[:300])
