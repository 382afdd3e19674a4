"""Questions asked in every way, as several benchmarks begin: unchanged, and by each operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.data import Question
from query_mutator.environment.episodes import EpisodeView
from query_mutator.environment.scoring import scoring_runner
from query_mutator.evaluation.measuring import Asking, Measured, measure_flow
from query_mutator.models.cache import default_cache_file
from query_mutator.models.flows import Flow, FlowRunner, Result
from query_mutator.models.session import Models, open_models
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import Weights, load_objective
from query_mutator.operators import Operator
from query_mutator.servers.rewriters import NONE, SHIPPED

ANSWER_TOKENS = 40
"""Enough for a fact and a sentence around it, at less than half of the time of the default."""


def check_shipped(adapter: Path) -> None:
    """Refuses to measure the model by itself where its adapter was asked for and is not there."""
    if not adapter.is_file():
        raise UserError(
            f"the shipped rewriter is not there ({adapter.name}): give another by --rewriter PATH, "
            "or measure the model by itself by --rewriter none"
        )


def settings_for(
    operators: Sequence[Operator], *, rewriter: str | None = None, **changes: Any
) -> ModelSettings:
    """How models are asked: the embedded one, answers kept, unless `changes` say otherwise.

    Its rewriter is the shipped one where none is named, and none where no operator asks it.
    """
    tuned = any(operator.tuned for operator in operators)
    if tuned and rewriter is None and changes.get("server", "embedded") == "embedded":
        check_shipped(SHIPPED)
    return ModelSettings(
        **{
            "server": "embedded",
            "rewriter": rewriter if tuned else NONE,
            "max_tokens_answer": ANSWER_TOKENS,
            "cache_file": default_cache_file(),
            **changes,
        }
    )


@dataclass(frozen=True)
class Asker:
    """Models at hand and all that is needed to ask them."""

    models: Models
    asking: Asking

    def each(self, questions: Iterable[Question]) -> Iterator[Measured]:
        """Every question measured, as its last answer arrives; one that failed says why."""
        return self.run(measure_flow(question, self.asking) for question in questions)

    def run(self, flows: Iterable[Flow[Result]]) -> Iterator[Result]:
        """What comes of flows that ask the models and have answers scored, as they end."""
        runner: FlowRunner[Result] = scoring_runner(self.asking.objective, self.models, None)
        for _, result in runner.each(flows):
            yield result


@contextmanager
def open_asker(operators: Sequence[Operator], settings: ModelSettings) -> Iterator[Asker]:
    """The models of `settings`, asked for an answer by each of `operators`, as long as it lasts."""
    objective = load_objective("answer", Weights())
    view = EpisodeView(len(operators), 1)
    with open_models(settings) as models:
        yield Asker(models, Asking(operators, view, objective, models.roles))
