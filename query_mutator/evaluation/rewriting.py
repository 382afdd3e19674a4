"""What `mutate_query.py` does: rewrites questions, and explains why."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from query_mutator.base.errors import UserError
from query_mutator.base.terminal import printable, show_warnings
from query_mutator.base.untrusted import read_text
from query_mutator.data.loading import MAX_QUESTION_CHARACTERS
from query_mutator.evaluation.trained_policy import Rewritten, load_policy, use_one_thread
from query_mutator.models.encoders import Encoder
from query_mutator.runs.transitions import read_transitions

SHOWN_PROBABILITIES = 3
SIMILAR = 3


@dataclass(frozen=True)
class SimilarQuestion:
    """A training question that resembles the one asked, and what it gained by which operator."""

    question: str
    similarity: float
    gains: dict[str, float]


class TrainingMemory:
    """What the training questions of a run gained, to be found by likeness."""

    def __init__(self, run: str, encoder: Encoder) -> None:
        self._encoder = encoder
        gains: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for step in read_transitions(run):
            first = step.query == step.original_query
            if first and not step.failed and step.operator != "stop":
                gains[step.original_query][step.operator].append(step.reward)
        self._questions = list(gains)
        self._gains = [
            {name: float(np.mean(rewards)) for name, rewards in sorted(by_operator.items())}
            for by_operator in gains.values()
        ]
        self._vectors = encoder.encode(self._questions) if self._questions else None

    def similar(self, question: str) -> list[SimilarQuestion]:
        """The training questions nearest in meaning, the nearest first."""
        if self._vectors is None:
            return []
        likeness = self._vectors @ self._encoder.encode([question])[0]
        nearest = np.argsort(-likeness)[:SIMILAR]
        return [
            SimilarQuestion(self._questions[i], round(float(likeness[i]), 3), self._gains[i])
            for i in nearest
        ]


def rewrite_command(
    run_path: str,
    questions: Sequence[str],
    *,
    file: str | None,
    as_json: bool,
    explain: bool,
    least_probability: float,
    changes: dict[str, Any],
) -> int:
    """Rewrites, prints each as soon as those before it are done; returns the exit code."""
    show_warnings()
    use_one_thread()
    texts = _gather(questions, file)
    with load_policy(run_path, **changes) as policy:
        memory = TrainingMemory(run_path, policy.models.encoder) if explain else None
        failed = False
        for result in policy.rewrite_each(texts, least_probability=least_probability):
            failed = failed or bool(result.failed)
            similar = memory.similar(result.question) if memory else []
            if as_json:
                row = asdict(result)
                if memory:
                    row["similar"] = [asdict(one) for one in similar]
                print(json.dumps(row), flush=True)
            else:
                print(_shown(result, similar, least_probability), flush=True)
    return 1 if failed else 0


def _gather(questions: Sequence[str], file: str | None) -> list[str]:
    texts = [text for text in questions if text != "-"]
    lines: list[str] = []
    if file:
        lines += read_text(file, "the questions").splitlines()
    piped = sys.stdin is not None and not sys.stdin.isatty()
    if "-" in questions or (not questions and not file and piped):
        lines += sys.stdin.read().splitlines() if sys.stdin else []
    texts = [text.strip() for text in [*texts, *lines] if text.strip()]
    if not texts:
        raise UserError("no question: give one as an argument, by --file, or on standard input")
    for text in texts:
        if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
            raise UserError("a question is not UTF-8 text")
        if len(text) > MAX_QUESTION_CHARACTERS:
            raise UserError(f"a question is longer than {MAX_QUESTION_CHARACTERS} characters")
    return texts


def _shown(result: Rewritten, similar: Sequence[SimilarQuestion], least: float) -> str:
    rows = [("question", result.question)]
    if result.failed:
        rows.append(("failed", result.failed))
    else:
        rows.append(("operators", ", ".join(result.operators) or _left_alone(result, least)))
        likely = list(result.probabilities.items())[:SHOWN_PROBABILITIES]
        rows.append(("chances", ", ".join(f"{name} {chance:.0%}" for name, chance in likely)))
        rows.append(("before", result.answer_before))
    if result.refused:
        rows.append(("refused", result.refused))
    for tried in result.not_kept:
        told = tried.answer if tried.answer != result.answer_after else "the answer is the same"
        rows += [("tried", f"{tried.operator}: {tried.query}"), ("not kept", told)]
    if len(result.operators) > len(result.not_kept):
        rows += [("rewritten", result.rewritten_query), ("after", result.answer_after)]
    if result.not_kept:
        kept = "after" if len(result.operators) > len(result.not_kept) else "before"
        rows.append(("kept", f"the answer {kept}"))
    for one in similar:
        gained = sorted(one.gains.items(), key=lambda pair: -pair[1])
        told = ", ".join(f"{name} {gain:+.2f}" for name, gain in gained)
        rows.append(("similar", f"{one.question} ({told})"))
    return "\n".join(f"{label + ':':<11} {printable(text)}" for label, text in rows) + "\n"


def _left_alone(result: Rewritten, least: float) -> str:
    best, chance = next(iter(result.probabilities.items()), ("stop", 1.0))
    if best == "stop" or chance >= least:
        return "none: best left as it is"
    return f"none: {best} would be the choice, with {chance:.0%} below the {least:.0%} asked for"
