"""Which scores paid the steps of a run, and what is to be said where that is not today's."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.base.errors import UserError
from query_mutator.base.stored import stored_as
from query_mutator.objectives.version import SCORING, UNTOLD, is_versioned, named
from query_mutator.runs.directory import CONFIG, RunDirectory

TRAINED_UNDER = "trained_under_score"
"""In a run's config.json and its evaluations: the versions of the score, in order."""
SCORED_BY = "scored_by"
"""In a checkpoint: the version of the score of the episodes that are under way in it."""


def trained_under(run: RunDirectory, objective: str) -> list[int]:
    """The scores that paid a run's steps, in order; none where the objective is the user's own."""
    if not is_versioned(objective):
        return []
    try:
        return stored_as(list[int], run.read_json(CONFIG).get(TRAINED_UNDER, [UNTOLD]))
    except ValueError as error:
        raise UserError(f"{run.path / CONFIG} is damaged: {TRAINED_UNDER}, {error}") from error


def told_of_another_score(scores: Sequence[int], judged_by: int = SCORING) -> str:
    """What to say of a policy that was trained under other scores than it is judged by, or ""."""
    if not scores or set(scores) == {judged_by}:
        return ""
    return (
        f"the policy was trained under {named(scores)}; it is judged by score {judged_by}: "
        "train anew to learn what that pays for"
    )
