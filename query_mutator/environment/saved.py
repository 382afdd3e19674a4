"""The state of an environment in mid-episode as plain values, and back, each value checked."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from query_mutator.environment.episodes import EpisodeState, EpisodeView
from query_mutator.objectives import Score, Term


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
    saved = _kept(plain, dict, "the environment")
    state = _kept(saved.get("state"), dict, "state")
    tried = tuple(_number(action, view, "tried") for action in _kept(state.get("tried"), list, ""))
    template = state.get("template")
    texts = ("original", "current", "prompt", "template_text", "first_answer", "answer")
    steps_left = _kept(state.get("steps_left"), int, "steps_left")
    if not 0 <= steps_left <= view.max_rewrites:
        raise ValueError(f"steps_left is {steps_left}")
    terms = _kept(_kept(saved.get("score"), dict, "score").get("terms"), dict, "terms")
    return SavedEpisode(
        seed=_kept(saved.get("seed"), int, "seed"),
        episode=_kept(saved.get("episode"), int, "episode"),
        random=_kept(saved.get("random"), dict, "random"),
        question_id=_kept(saved.get("question_id"), str, "question_id"),
        state=EpisodeState(
            **{name: _kept(state.get(name), str, name) for name in texts},
            template=None if template is None else _number(template, view, "template"),
            answer_cut=_kept(state.get("answer_cut"), bool, "answer_cut"),
            tried=tried,
            steps_left=steps_left,
        ),
        score=Score({name: _term(term) for name, term in terms.items()}),
        episode_return=_finite(saved.get("episode_return"), "episode_return"),
    )


def _term(plain: Any) -> Term:
    term = _kept(plain, dict, "a term")
    value, weight = (_finite(term.get(name), name) for name in ("value", "weight"))
    return Term(value, _kept(term.get("why"), str, "why"), weight)


def _number(value: Any, view: EpisodeView, name: str) -> int:
    """The number of an operator."""
    number: int = _kept(value, int, name)
    if not 0 <= number < view.num_actions - 1:
        raise ValueError(f"{name} names operator {number}")
    return number


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is no number")
    return value


def _kept(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value
