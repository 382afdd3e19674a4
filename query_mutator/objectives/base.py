"""The words objectives are written in: a batch of answers, evidence, and scores made of terms."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from query_mutator.models.calls import Request
from query_mutator.models.roles import Roles


@dataclass(frozen=True)
class Term:
    """One part of a score and the reason for it; it counts `weight` times."""

    value: float
    why: str = ""
    weight: float = 1.0


@dataclass(frozen=True)
class Score:
    """How good an answer is: the weighted sum of its terms.

    >>> Score({"facts": Term(1.0, "all found", 0.5), "drift": Term(0.2, "", -1.0)}).total
    0.3
    """

    terms: dict[str, Term]

    @property
    def total(self) -> float:
        return sum(term.weight * term.value for term in self.terms.values())


@dataclass(frozen=True)
class Weights:
    """How much each part counts; these are flags of the trainer."""

    facts: float = 0.5
    closeness: float = 0.5
    willing: float = 0.5
    on_point: float = 0.5
    stable: float = 0.5
    verdict: float = 1.0
    drift: float = 1.0
    drift_threshold: float = 0.2


@dataclass(frozen=True)
class Batch:
    """Answers to judge, a list for each column; `encode` turns texts into unit vectors."""

    questions: Sequence[str]
    """What was asked, in the user's words."""
    rewritten_questions: Sequence[str]
    """The question as rewritten, without the text of a template."""
    answers: Sequence[str]
    references: Sequence[str]
    key_facts: Sequence[tuple[tuple[str, ...], ...]]
    encode: Callable[[Sequence[str]], npt.NDArray[np.float32]]
    columns: Sequence[dict[str, Any]] = field(default_factory=list)
    """The other columns of the dataset, a dictionary for each row."""
    evidence: Sequence[Any] = field(default_factory=list)
    """What the objective's own `gather` found out, a value for each row."""

    @classmethod
    def of(
        cls,
        answered: Sequence[AnsweredQuestion],
        encode: Callable[[Sequence[str]], npt.NDArray[np.float32]],
    ) -> Batch:
        """The columns of these rows."""
        return cls(
            questions=[one.question for one in answered],
            rewritten_questions=[one.rewritten_question for one in answered],
            answers=[one.answer for one in answered],
            references=[one.reference for one in answered],
            key_facts=[one.key_facts for one in answered],
            encode=encode,
            columns=[one.columns for one in answered],
            evidence=[one.evidence for one in answered],
        )


@dataclass(frozen=True)
class AnsweredQuestion(Request[Score]):
    """An answer that is about to be judged, and how it was asked for: awaited, it is a score."""

    question: str
    """What was asked, in the user's words."""
    rewritten_question: str
    """The question as rewritten, without the text of a template."""
    template: str
    """Text with `{query}` in it that stood around the question when it was sent."""
    answer: str
    first_answer: str
    """The answer to the question unchanged."""
    reference: str = ""
    key_facts: tuple[tuple[str, ...], ...] = ()
    columns: dict[str, Any] = field(default_factory=dict)
    evidence: Any = None
    """What the objective's own `gather` found out."""

    def prompt_for(self, question: str) -> str:
        """What to send to ask another question in the same way."""
        return self.template.replace("{query}", question)


@dataclass(frozen=True)
class Evidence:
    """What an objective found out by calls of its own, in plain values; or why it could not."""

    value: Any = None
    failure: str = ""


Gather = Callable[[AnsweredQuestion, Roles], Coroutine[Any, Any, Evidence]]
"""A flow of `models.flows`: it awaits calls, and returns evidence."""


@dataclass(frozen=True)
class Objective:
    """What a good answer is: a batched function, and the calls it needs before it can tell.

    >>> short = Objective(lambda batch: [Score({"short": Term(1.0)}) for _ in batch.answers])
    >>> short(Batch(["Why?"], ["Why?"], ["So."], [""], [()], encode=lambda texts: None))[0].total
    1.0
    """

    score: Callable[[Batch], Sequence[Score]]
    gather: Gather | None = None
    needs_reference: bool = False
    without_calls: Callable[[Batch], Sequence[Score]] | None = None
    """Beside a `gather`: those terms of the score that need no evidence, the others left out."""

    def __call__(self, batch: Batch) -> Sequence[Score]:
        return self.score(batch)

    @property
    def scores_again(self) -> bool:
        """Whether answers that were scored before can be scored without a call."""
        return self.gather is None or self.without_calls is not None

    def again(self, batch: Batch, before: Sequence[Mapping[str, Term]]) -> list[Score]:
        """The scores of answers that were scored `before`: terms that take calls stay as they were.

        >>> kind = Objective(lambda batch: [Score({"kind": Term(1.0)})])
        >>> kind.again(Batch(["Why?"], ["Why?"], ["So."], [""], [()], lambda texts: None), [{}])
        [Score(terms={'kind': Term(value=1.0, why='', weight=1.0)})]
        """
        if self.gather is None:
            return list(self.score(batch))
        assert self.without_calls is not None, "an objective that cannot score again"
        return [
            Score({**terms, **score.terms})
            for terms, score in zip(before, self.without_calls(batch), strict=True)
        ]


def as_objective(objective: Objective | Callable[[Batch], Sequence[Score]]) -> Objective:
    """The objective itself, or one made of a plain function."""
    return objective if isinstance(objective, Objective) else Objective(objective)


def cosines(left: npt.NDArray[np.float32], right: npt.NDArray[np.float32]) -> list[float]:
    """The cosine of each pair of rows of unit length."""
    return [float(np.dot(a, b)) for a, b in zip(left, right, strict=True)]
