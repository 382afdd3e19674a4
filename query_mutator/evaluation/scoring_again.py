"""Answers of a log scored by the score of today, without a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.stored import stored_as
from query_mutator.data import Question
from query_mutator.environment.scoring import opening_terms
from query_mutator.environment.transition import Transition, terms_json
from query_mutator.evaluation.measuring import Measured, Tried, fingerprint
from query_mutator.models.encoders import Encoder
from query_mutator.objectives import AnsweredQuestion, Batch, Objective, Score, Term

AT_ONCE = 256
"""Lines whose answers are scored together: a log may be larger than memory."""
STOP = "stop"


@dataclass(frozen=True)
class Rescored:
    """A step by the score it was logged with, and by today's."""

    before: Transition
    after: Transition
    line: dict[str, Any]
    """All that its line holds, by today's score."""
    opens: bool
    """Whether an episode begins with it."""


@dataclass
class Again:
    """An objective, and the questions whose answers it scores again."""

    objective: Objective
    encoder: Encoder
    questions: Mapping[str, Question]
    """By id."""
    kept: set[str] = field(default_factory=set)
    """The terms that were taken over as they were, as they take calls."""

    def question(self, identity: str, text: str) -> Question | None:
        """The question of that id, if it is still the one that was asked."""
        found = self.questions.get(identity)
        return found if found is not None and found.question == text else None

    def scores(
        self, answered: Sequence[AnsweredQuestion], before: Sequence[Mapping[str, Term]]
    ) -> list[Score]:
        """The scores of answers that were scored `before`."""
        if not answered:
            return []
        scores = self.objective.again(Batch.of(answered, self.encoder.encode_each), before)
        for terms, score in zip(before, scores, strict=True):
            self.kept |= {name for name in terms if score.terms.get(name) is terms[name]}
        self.kept -= set(opening_terms(0.0))
        return scores


@dataclass
class _Episode:
    """An episode of a log, up to a line of it."""

    query: str
    """What was last sent."""
    score: Score
    gained: float = 0.0


@dataclass(frozen=True)
class _Reading:
    """A line of a log, before it is scored."""

    step: Transition
    line: dict[str, Any]
    opens: bool
    answered: bool
    """Whether it led to an answer of its own: not where a call failed, nor where it stopped."""


class TransitionsAgain:
    """Scores the transitions of one log again, in order."""

    def __init__(self, again: Again, path: Path) -> None:
        self._again, self._path = again, path
        self._sent: dict[int, str] = {}
        """What was last sent in the episode that is open in each environment."""
        self._episodes: dict[int, _Episode] = {}

    def each(self, log: Iterable[tuple[Transition, dict[str, Any]]]) -> Iterator[Rescored]:
        """Every line of a log, scored again; `UserError` for one that cannot be."""
        numbered = enumerate(log, 1)
        while some := list(islice(numbered, AT_ONCE)):
            yield from self._together(some)

    def _together(
        self, some: Sequence[tuple[int, tuple[Transition, dict[str, Any]]]]
    ) -> Iterator[Rescored]:
        readings: list[_Reading] = []
        asked: list[AnsweredQuestion] = []
        before: list[Mapping[str, Term]] = []
        for number, (step, line) in some:
            question = self._again.question(step.question_id, step.original_query)
            if question is None:
                raise UserError(
                    f"{self._path}, line {number}: the question {step.question_id!r} is not in the "
                    "run's dataset as it was asked;\nbring it back to have its answers scored"
                )
            reading = self._read(number, step, line)
            terms = self._terms(number, reading)
            if reading.opens:
                stopped = terms and (step.operator == STOP or step.dropped is not None)
                before.append(terms if stopped else opening_terms(step.previous_score))
                asked.append(_answered(question, step.original_query, step.previous_answer))
            if reading.answered:
                before.append(step.dropped.terms if step.dropped else terms)
                answer = step.dropped.answer if step.dropped else step.answer
                asked.append(_answered(question, step.rewritten_question, answer))
            readings.append(reading)
        scores = iter(self._again.scores(asked, before))
        for reading in readings:
            yield self._scored(reading, scores)

    def _read(self, number: int, step: Transition, line: dict[str, Any]) -> _Reading:
        """The line, and whether it begins an episode; refused where it does not fit the log."""
        sent = self._sent.get(step.env, step.original_query)
        if step.query != sent:
            raise UserError(
                f"{self._path}, line {number} is damaged: it does not follow from the line before "
                "it of its environment"
            )
        opens = step.env not in self._sent
        if step.terminated or step.failed:
            self._sent.pop(step.env, None)
        else:
            self._sent[step.env] = step.query if step.dropped else step.rewritten_query
        return _Reading(step, line, opens, not step.failed and step.operator != STOP)

    def _terms(self, number: int, reading: _Reading) -> dict[str, Term]:
        """The terms that were logged, where they are needed."""
        if self._again.objective.gather is None or reading.step.failed:
            return {}
        try:
            return stored_as(dict[str, Term], reading.line.get("terms"), "terms")
        except ValueError as error:
            raise UserError(f"{self._path}, line {number} is damaged: {error}") from error

    def _scored(self, reading: _Reading, scores: Iterator[Score]) -> Rescored:
        step = reading.step
        if reading.opens:
            self._episodes[step.env] = _Episode(step.query, next(scores))
        episode = self._episodes[step.env]
        previous = episode.score.total
        tried = next(scores) if reading.answered else episode.score
        score = episode.score if step.dropped else tried
        changes: dict[str, Any] = {"previous_score": previous}
        if not step.failed:
            reward = score.total - previous
            episode.score, episode.gained = score, episode.gained + reward
            ended = step.episode_return is not None
            changes |= {
                "score": score.total,
                "reward": reward,
                "episode_return": episode.gained if ended else None,
            }
        line = {**reading.line, **changes}
        if not step.failed:
            line["terms"] = terms_json(score.terms)
        if step.dropped is not None:
            changes["dropped"] = replace(step.dropped, score=tried.total, terms=tried.terms)
            line["dropped"] = asdict(changes["dropped"])
        return Rescored(step, replace(step, **changes), line, reading.opens)


def measured_again(again: Again, measured: Sequence[Measured]) -> list[Measured]:
    """Measured questions, each answer scored again; ValueError for records that are damaged."""
    asked, before, digests = [], [], []
    for one in measured:
        question = again.question(one.id, one.question)
        assert question is not None, "a question that is not in the dataset"
        digests.append(fingerprint(question))
        for tried in _tried(one):
            asked.append(_answered(question, tried.rewritten_question, tried.answer))
            before.append(stored_as(dict[str, Term], tried.terms, "terms"))
    scores = iter(again.scores(asked, before))
    found = []
    for one, sha256 in zip(measured, digests, strict=True):
        ways = {name: _by(next(scores), tried) for name, tried in one.ways.items()}
        policy = _by(next(scores), one.policy) if one.policy else None
        last_kept = _by(next(scores), one.last_kept) if one.last_kept else None
        contenders = {name: _by(next(scores), tried) for name, tried in one.contenders.items()}
        found.append(
            replace(
                one,
                sha256=sha256,
                ways=ways,
                policy=policy,
                last_kept=last_kept,
                contenders=contenders,
            )
        )
    return found


def _tried(measured: Measured) -> list[Tried]:
    policy = filter(None, (measured.policy, measured.last_kept))
    return [*measured.ways.values(), *policy, *measured.contenders.values()]


def _by(score: Score, tried: Tried) -> Tried:
    terms = {name: asdict(term) for name, term in score.terms.items()}
    return replace(tried, score=score.total, terms=terms)


def _answered(question: Question, rewritten_question: str, answer: str) -> AnsweredQuestion:
    return AnsweredQuestion(
        question=question.question,
        rewritten_question=rewritten_question,
        template="",  # only calls are put into it, and none is made
        answer=answer,
        first_answer="",
        reference=question.reference,
        key_facts=question.key_facts,
        columns=question.columns,
    )
