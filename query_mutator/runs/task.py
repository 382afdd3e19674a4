"""From settings to the parts of a run, each checked before the next is begun."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.base.stored import stored_as
from query_mutator.base.terminal import printable
from query_mutator.data import Question, load_questions, split_questions, twins_of
from query_mutator.models.cache import default_cache_file
from query_mutator.models.session import Models
from query_mutator.models.settings import ModelSettings
from query_mutator.objectives import Objective, Weights, load_objective
from query_mutator.operators import Operator, named_operators
from query_mutator.runs.directory import CONFIG, RunDirectory
from query_mutator.runs.settings import Settings, may_ask_judge, read_settings
from query_mutator.servers.rewriters import NONE

EMBEDDED_MAX_REWRITES = 1
MAX_REWRITES = 2
"""A second rewrite helps larger models; it gave nothing on the embedded one."""


@dataclass(frozen=True)
class Task:
    """What is learned: the questions, the rewrites, and what counts as better."""

    train: list[Question]
    heldout: list[Question]
    operators: list[Operator]
    objective: Objective
    objective_source: str = ""
    """The text of the user's file, where the objective is one."""

    def fingerprint(self) -> str:
        """Changes with any question or operator, and with the user's objective."""
        parts = [asdict(question) for question in (*self.train, *self.heldout)]
        parts += [operator.plain() for operator in self.operators]
        parts += [{"objective": self.objective_source}]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Finished:
    """A run that has ended as asked, its models still at hand."""

    run: RunDirectory
    settings: Settings
    task: Task
    models: Models


def load_task(settings: Settings, operators: Sequence[Operator] | None = None) -> Task:
    """The task that the settings describe; raises `UserError` for what is wrong with it.

    The operators of a trained run are given: it keeps them, and their files may have gone.
    """
    train, heldout = split_questions(load_questions(settings.dataset))
    if not train:
        raise UserError(
            f"{settings.dataset} has no question to train on: all its rows are held out "
            "(rows with no split are split by their content; write split: train to decide)"
        )
    if settings.dataset:  # bad twins are told before anything is asked
        twins_of([*train, *heldout], settings.dataset)
    if settings.num_questions is not None and settings.num_questions < len(train):
        train = random.Random(settings.seed).sample(train, settings.num_questions)
    if operators is None:
        names = [name.strip() for name in settings.only_operators.split(",") if name.strip()]
        operators = named_operators(names, settings.operators)
    objective = load_objective(settings.objective, weights_of(settings))
    if objective.needs_reference:
        check_references([*train, *heldout], settings.objective)
    source = ""
    if ".py:" in settings.objective:
        source = (
            Path(settings.objective.rpartition(":")[0]).expanduser().read_text(encoding="utf-8")
        )
    return Task(train, heldout, list(operators), objective, source)


def load_run(run: RunDirectory) -> tuple[Settings, list[Operator]]:
    """The settings and the operators a run was trained with."""
    if not (run.path / CONFIG).is_file():
        raise UserError(f"{run.path} holds no run (no {CONFIG}); check the path")
    settings = read_settings(run.path / CONFIG)
    if settings.max_rewrites is None:
        raise UserError(f"{run.path / CONFIG} is damaged: it has no max_rewrites")
    return settings, stored_operators(run)


def stored_operators(run: RunDirectory) -> list[Operator]:
    """The operators that a run began with."""
    stored = run.read_json(CONFIG).get("operators")
    if not isinstance(stored, list):
        raise UserError(f"{run.path / CONFIG} is damaged: it has no list of operators")
    try:
        return [stored_as(Operator, entry) for entry in stored]
    except ValueError as error:
        raise UserError(
            f"{run.path / CONFIG} is damaged: an operator is not as it was stored ({error})"
        ) from error


def weights_of(settings: Settings) -> Weights:
    """The objective's share of the settings."""
    return Weights(
        facts=settings.facts_weight,
        closeness=settings.closeness_weight,
        willing=settings.willing_weight,
        on_point=settings.on_point_weight,
        stable=settings.stable_weight,
        verdict=settings.verdict_weight,
        drift=settings.drift_weight,
        drift_threshold=settings.drift_threshold,
    )


def check_references(questions: Sequence[Question], objective: str) -> None:
    """Refuses questions without the reference answer that the objective needs."""
    missing = next((question for question in questions if not question.reference), None)
    if missing is not None:
        raise UserError(
            f"question '{missing.id}' has no reference answer, and --objective {objective} needs "
            "one.\nGive every question a reference, or --objective helpful, consistency or judge"
        )


def absolute_paths(settings: Settings) -> Settings:
    """The settings with the user's files as absolute paths, so that they repeat from anywhere."""

    def absolute(path: str) -> str:
        return os.path.abspath(os.path.expanduser(path))

    objective = settings.objective
    if ".py:" in objective:
        file, _, name = objective.rpartition(":")
        objective = f"{absolute(file)}:{name}"
    embedding, rewriter = settings.embedding_model, settings.rewriter
    return replace(
        settings,
        dataset=absolute(settings.dataset) if settings.dataset else None,
        operators=[absolute(file) for file in settings.operators],
        objective=objective,
        rewriter=absolute(rewriter) if rewriter not in (None, NONE) else rewriter,
        embedding_model=absolute(embedding) if os.path.isdir(embedding) else embedding,
    )


def versions() -> dict[str, str]:
    """What the run ran on."""
    packages = ("torch", "numpy", "gymnasium", "sentence-transformers", "xllamacpp")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def model_settings(settings: Settings, operators: Sequence[Operator]) -> ModelSettings:
    """The models' share of the settings; a rewriter is loaded where an operator asks it."""
    rewriter = settings.rewriter
    if rewriter is None and not any(operator.tuned for operator in operators):
        rewriter = NONE
    return ModelSettings(
        server=settings.server,
        mutator_server=settings.mutator_server,
        target_server=settings.target_server,
        judge_server=settings.judge_server,
        mutator_model=settings.mutator_model,
        target_model=settings.target_model,
        judge_model=settings.judge_model,
        embedding_model=settings.embedding_model,
        rewriter=rewriter,
        slots=settings.max_workers,
        timeout_s=settings.timeout,
        load_timeout_s=settings.load_timeout,
        retries=settings.retries,
        max_outage_s=settings.max_outage,
        num_ctx=settings.num_ctx,
        max_tokens_mutation=settings.max_tokens_mutation,
        max_tokens_answer=settings.max_tokens_answer,
        temperature_mutation=settings.temperature_mutation,
        temperature_answer=settings.temperature_answer,
        seed=settings.seed,
        faithful=settings.faithful,
        cache_file=(settings.cache or default_cache_file()) if settings.use_cache else None,
        group_by_model=settings.group_by_model or None,
    )


def say_servers(models: Models, settings: Settings) -> None:
    """Tells on the terminal which servers and models are used, and why."""
    roles = models.roles
    judge = f", judge {roles.judge_model}" if may_ask_judge(settings) else ""
    tuned = " (tuned to rewrite)" if roles.rewriter_model else ""
    parts = f"mutator {roles.mutator_model}{tuned}, target {roles.target_model}{judge}"
    print(printable(f"server: {models.connection.why}; {parts}"), file=sys.stderr)
