"""Picks a shipped objective, or loads a user's `file.py:name`."""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.models.calls import Call
from query_mutator.models.flows import Encode
from query_mutator.models.roles import Roles
from query_mutator.objectives.answer import make_answer_objective
from query_mutator.objectives.base import (
    AnsweredQuestion,
    Batch,
    Evidence,
    Gather,
    Objective,
    Score,
    Term,
    Weights,
    as_objective,
)
from query_mutator.objectives.consistency import make_consistency_objective
from query_mutator.objectives.helpful import make_helpful_objective
from query_mutator.objectives.judge import make_judge_objective

LARGEST_SCORE = 1e6

OBJECTIVES: dict[str, Callable[[Weights], Objective]] = {
    "answer": make_answer_objective,
    "helpful": make_helpful_objective,
    "consistency": make_consistency_objective,
    "judge": make_judge_objective,
}


def load_objective(name: str, weights: Weights) -> Objective:
    """The objective a user named; a user's function may return plain numbers."""
    if ".py:" in name:
        return _checked(as_objective(_from_file(name)), name)
    if name not in OBJECTIVES:
        near = difflib.get_close_matches(name, OBJECTIVES, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UserError(
            f"no objective '{name}': {hint}There are: {', '.join(OBJECTIVES)}, or file.py:name"
        )
    return OBJECTIVES[name](weights)


def _from_file(name: str) -> Objective | Callable[[Batch], Sequence[Any]]:
    path, _, function_name = name.rpartition(":")
    file = Path(os.path.expanduser(path))
    if not file.is_file():
        raise UserError(f"--objective {name}: there is no file {file}")
    function = getattr(_module_of(file), function_name, None)
    if not callable(function):
        raise UserError(f"{file} has no function '{function_name}'")
    found: Objective | Callable[[Batch], Sequence[Any]] = function
    return found


def _module_of(file: Path) -> ModuleType:
    """The user's file as a module; `UserError` says why it cannot be one."""
    # A name of its own: a user's `random.py` must not stand for Python's.
    spec = importlib.util.spec_from_file_location(f"objective_in_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks up what its annotations mean
    # What a user's file imports from `objectives` or `model_client` is in these rooms.
    for name, found in list(sys.modules.items()):
        for before, room in (("objectives", __package__), ("model_client", "query_mutator.models")):
            if name == room or name.startswith(f"{room}."):
                sys.modules.setdefault(before + name.removeprefix(room), found)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        del sys.modules[spec.name]
        raise UserError(f"{file} cannot be loaded: {_why_not_loaded(error)}") from error
    return module


def _why_not_loaded(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and "utf-8" in str(error).casefold():
        return "it is not UTF-8 text; save it as UTF-8"
    reason = f"{type(error).__name__}: " + " ".join(str(error).split())[:300]
    if isinstance(error, ModuleNotFoundError):
        return f"{reason}; install it, or add its folder to PYTHONPATH"
    return reason


def _checked(objective: Objective, name: str) -> Objective:
    """The user's objective, with what goes wrong in it told under its name."""

    def score(batch: Batch) -> list[Score]:
        try:
            results = list(objective(batch))
        except (Exception, SystemExit) as error:  # whatever the user's function raises
            raise _misbehaves(name, f"failed: {type(error).__name__}: {error}") from error
        if len(results) != len(batch.answers):
            raise UserError(
                f"objective {name} gave {len(results)} scores for {len(batch.answers)} answers"
            )
        return [_as_score(result, name) for result in results]

    gather = _checked_gather(objective.gather, name) if objective.gather else None
    return Objective(score, gather, objective.needs_reference)


def _checked_gather(gather: Gather, name: str) -> Gather:
    async def checked(asked: AnsweredQuestion, roles: Roles) -> Evidence:
        flow, found = None, None
        while True:
            try:
                flow = flow or gather(asked, roles)  # a coroutine, or a generator of requests
                request = flow.send(found)
            except StopIteration as stop:
                if not isinstance(stop.value, Evidence):
                    raise _misbehaves(name, f"must gather Evidence, not {stop.value!r}") from None
                return stop.value
            except (Exception, SystemExit) as error:  # whatever the user's flow raises
                raise _misbehaves(name, f"failed: {type(error).__name__}: {error}") from error
            if not isinstance(request, Call | Encode):
                raise _misbehaves(name, f"may ask for a Call or an Encode, not {request!r}")
            found = await request

    return checked


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
