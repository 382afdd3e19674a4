"""A step as it is remembered: what was asked, what was done about it, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeGuard

from query_mutator.base.stored import stored_as
from query_mutator.models.calls import Outcome, Reply
from query_mutator.objectives import Score, Term

LARGEST = 1e15
"""No score or return that is read is larger."""
OF_A_RUN = {"update", "env", "step", "terminated", "episode_return"}


@dataclass(frozen=True)
class Dropped:
    """The answer to a rewrite that was not kept."""

    answer: str
    score: float
    terms: dict[str, Term] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Transition:
    """One step of an episode: a line of a run's log, and what Gymnasium calls info."""

    update: int = 0
    env: int = 0
    step: int = 0
    """Where in a run it was made: the rollout's number, the environment's, and its step."""
    terminated: bool = False
    episode_return: float | None = None
    """Of the episode that ended with it, if one did and nothing failed."""
    question_id: str
    category: str
    operator: str
    original_query: str
    query: str
    """What was sent before."""
    rewritten_query: str
    """What was sent then."""
    rewritten_question: str
    """The same without the text of a template."""
    previous_answer: str
    answer: str
    """The answer that is kept: the previous one where that to the rewrite was dropped."""
    previous_score: float
    score: float | None
    """None where a call has failed: what happened is not known."""
    reward: float = 0.0
    terms: dict[str, Term] = field(default_factory=dict)
    """What the score is made of; like `calls` not read back, as nothing that reads needs it."""
    failed: bool = False
    failure: str = ""
    refused_rewrite: str = ""
    """Why the mutator's rewrite was not used."""
    calls: dict[str, Outcome] = field(default_factory=dict)
    """How its calls ended, by what they were for."""
    dropped: Dropped | None = None
    """The rewrite's own answer where it was not kept, which undoes the rewrite; on its line only
    then."""
    differences: tuple[float, ...] = ()
    """What was looked at to keep an answer; on no line."""

    @property
    def tried_score(self) -> float | None:
        """The score of the rewrite's own answer, kept or not; None where a call has failed."""
        return self.dropped.score if self.dropped is not None else self.score

    def to_json(self) -> dict[str, Any]:
        """The line. What a call took depends on the moment; what it said does not."""
        line = {name: getattr(self, name) for name in _NAMES}
        calls: dict[str, Outcome] = line.pop("calls")
        del line["dropped"], line["differences"]
        line |= {
            "terms": terms_json(self.terms),
            "costs": {name: _tokens(call.reply) for name, call in calls.items()},
        }
        return line | ({"dropped": asdict(self.dropped)} if self.dropped is not None else {})

    @classmethod
    def from_json(cls, line: Any) -> Transition:
        """What `to_json` gave; raises ValueError for what is not whole, or of another kind."""
        if not isinstance(line, dict):
            raise ValueError("it is no object")
        values: dict[str, Any] = {name: line.get(name) for name in _NAMES}
        values["category"] = values["category"] or ""
        for name, kind in _KINDS.items():
            if type(values[name]) is not kind:
                raise ValueError(f"{name} is not a {kind.__name__}")
        may_lack = {"episode_return"} | ({"score"} if values["failed"] else set())
        for name in ("previous_score", "reward", "score", "episode_return"):
            if not (_is_number(values[name]) or (values[name] is None and name in may_lack)):
                raise ValueError(f"{name} is not a number")
        dropped = stored_as(Dropped, values["dropped"]) if values["dropped"] is not None else None
        if dropped is not None and not _is_number(dropped.score):
            raise ValueError("the score of a dropped answer is not a number")
        return cls(**values | {"terms": {}, "calls": {}, "dropped": dropped, "differences": ()})

    def info(self) -> dict[str, Any]:
        """What an environment tells of a step, and how its calls went; nothing of a run."""
        told = {name: value for name, value in self.to_json().items() if name not in OF_A_RUN}
        if self.episode_return is not None:
            told["episode_return"] = self.episode_return
        return told | {"costs": costs_json(self.calls)}


def undone(transition: Transition, kept_answer: str, kept_score: Score) -> Transition:
    """The step where the answer before it is kept: what was tried is told, and earns nothing."""
    assert transition.score is not None
    return replace(
        transition,
        answer=kept_answer,
        score=kept_score.total,
        reward=0.0,
        terms=kept_score.terms,
        dropped=Dropped(transition.answer, transition.score, transition.terms),
    )


_NAMES = [item.name for item in fields(Transition)]
_PLAIN = {"str": str, "int": int, "bool": bool}
_KINDS = {item.name: _PLAIN[item.type] for item in fields(Transition) if item.type in _PLAIN}


def terms_json(terms: Mapping[str, Term]) -> dict[str, Any]:
    """The terms of a score as JSON has them."""
    return {name: asdict(term) for name, term in terms.items()}


def costs_json(calls: Mapping[str, Outcome]) -> dict[str, Any]:
    """What calls took: tokens, the time that was waited, and that it took the server."""
    return {
        name: _tokens(call.reply)
        | {"latency_s": call.latency_s, "served_s": call.reply.served_s, "cached": call.cached}
        for name, call in calls.items()
    }


def _tokens(reply: Reply) -> dict[str, int]:
    return {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}


def _is_number(value: Any) -> TypeGuard[float]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= LARGEST
