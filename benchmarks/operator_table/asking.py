"""Fills a table: each question asked in every way, with what a policy would see of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.asking import Asker
from benchmarks.operator_table.questions import Wording
from benchmarks.operator_table.rows import Row, TableFile
from query_mutator.base.errors import ServerUnavailableError
from query_mutator.base.progress import Doing
from query_mutator.base.terminal import printable
from query_mutator.environment.episodes import opening_state
from query_mutator.evaluation.conditions import EDITING
from query_mutator.evaluation.measuring import UNCHANGED, Asking, measure_flow
from query_mutator.models.connect import told_digests
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import Weights
from query_mutator.objectives.version import SCORING
from query_mutator.operators import Operator


def conditions(asker: Asker, settings: ModelSettings) -> dict[str, Any]:
    """All that a row depends on but its question, by the words in which a difference is told."""
    return {
        "operators": [operator.plain() for operator in asker.asking.operators],
        "models": told_digests(asker.models.client.backends),
        "calls": asdict(asker.asking.roles),
        "embeddings": settings.embedding_model,
        "objective": {"name": "answer", **asdict(Weights())},
        "scores": SCORING,
        "edits": EDITING,
        "observations": asker.asking.view.size,
    }


def calls_needed(questions: int, operators: Sequence[Operator]) -> int:
    """How many calls so many questions take at most: a rewrite may change nothing."""
    rewrites = sum(operator.needs_model for operator in operators)
    return questions * (1 + len(operators) + rewrites)


async def row_flow(wording: Wording, asking: Asking) -> Row | str:
    """The row of a question, or why one of its calls has failed."""
    question = wording.question
    measured = await measure_flow(question, asking)
    if measured.failure:
        return measured.failure
    first = measured.ways[UNCHANGED]
    state = opening_state(
        question.question, first.answer, cut=first.cut, max_rewrites=asking.view.max_rewrites
    )
    observation = await asking.view.observe_flow(state)
    return Row(
        id=question.id,
        meaning=question.meaning,
        split=question.split,
        style=wording.style,
        category=question.category,
        question=question.question,
        sha256=measured.sha256,
        ways=measured.ways,
        # The shortest decimals that are the same float32 again.
        observation=[float(str(value)) for value in observation],
    )


def ask(left: Sequence[Wording], asker: Asker, file: TableFile, *, done: int) -> int:
    """Asks and keeps each row as it ends; returns how many questions failed.

    `done` is how many of all that are wanted are there already.
    """
    models, failed = asker.models, 0
    flows = (row_flow(wording, asker.asking) for wording in left)
    with Doing(done + len(left), done, doing="asking", noun="question") as progress:

        def show_pause() -> None:
            if outage := models.client.outage():
                progress.bar.set_description_str(printable(str(outage)))

        models.client.on_wait = show_pause
        for row in asker.run(flows):
            if isinstance(row, Row):
                file.add(row)
            else:
                failed += 1
                if reason := models.client.why_gone():
                    raise ServerUnavailableError(reason)
            progress.update(f"{models.client.counts().model_calls:,} calls, {failed:,} failed")
    return failed
