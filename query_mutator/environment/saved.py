"""The state of an environment in mid-episode as plain values, and back, each value checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from query_mutator.base.stored import stored_as
from query_mutator.environment.episodes import EpisodeState, EpisodeView
from query_mutator.objectives import Score


@dataclass(frozen=True)
class SavedEpisode:
    """Where an environment stands: nothing of it needs to be asked for again."""

    seed: int
    episode: int
    random: dict[str, Any]
    """The state of the environment's own generator."""
    question_id: str
    state: EpisodeState
    score: Score
    episode_return: float

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        plain = asdict(self)
        plain["state"]["tried"] = list(self.state.tried)
        return plain


def saved_episode(plain: Any, view: EpisodeView) -> SavedEpisode:
    """What `plain` gave; raises ValueError for anything else."""
    saved = stored_as(SavedEpisode, plain)
    state = saved.state
    for number in (*state.tried, state.template or 0):
        if not 0 <= number < view.num_operators:
            raise ValueError(f"there is no operator {number}")
    if not 0 <= state.steps_left <= view.max_rewrites:
        raise ValueError(f"steps_left is {state.steps_left}")
    return saved
