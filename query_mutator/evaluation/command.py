"""What `evaluate_query_mutator.py` does, and the end of a training run."""

from __future__ import annotations

import logging
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from query_mutator.base.errors import ServerUnavailableError, UserError, refused
from query_mutator.base.progress import Doing
from query_mutator.base.terminal import (
    command_line,
    counted,
    printable,
    show_warnings,
)
from query_mutator.data import Question, load_questions, sample_questions, split_questions, twins_of
from query_mutator.environment.scoring import scoring_runner
from query_mutator.evaluation.concluding import PICTURE, Answers, Plan, conclude
from query_mutator.evaluation.conditions import conditions
from query_mutator.evaluation.contenders import contenders_of
from query_mutator.evaluation.defaults import MARGIN, TRAINING_QUESTIONS
from query_mutator.evaluation.measuring import Asking, Measured, fingerprint, measure_flow
from query_mutator.evaluation.pairs import (
    choose_pairs,
    measured_pairs,
    most_pairs,
    twins_to_ask,
)
from query_mutator.evaluation.records import Records
from query_mutator.evaluation.report import several_as_text
from query_mutator.evaluation.several import Evaluated, compare_together
from query_mutator.evaluation.trained_policy import (
    TrainedPolicy,
    changed,
    check_same_task,
    load_trained,
    use_one_thread,
)
from query_mutator.evaluation.verdict import decide_together
from query_mutator.models.outages import Outage
from query_mutator.models.session import Models, open_models
from query_mutator.objectives.version import SCORING
from query_mutator.runs.directory import RunDirectory
from query_mutator.runs.scores import TRAINED_UNDER, told_of_another_score
from query_mutator.runs.settings import Settings, may_ask_judge
from query_mutator.runs.task import Finished, Task, load_run, load_task, model_settings, say_servers

logger = logging.getLogger(__name__)

EVALUATION = "evaluation"
SHIPPED = "shipped"


def evaluate_finished(finished: Finished) -> None:
    """The evaluation at the end of a training run."""
    run, settings, task = finished.run, finished.settings, finished.task
    if not task.heldout:
        print("no question is held out, so the policy is not evaluated (split: heldout)")
        return
    plan = make_plan(
        task.heldout,
        task.train,
        run.path / EVALUATION,
        again=f"{command_line('evaluate')} {shlex.quote(str(run.path))}"
        + (f" --num-questions {settings.eval_questions}" if settings.eval_questions else ""),
        dataset=settings.dataset,
        num_questions=settings.eval_questions,
        twins=most_pairs(settings.objective, None),
    )
    trained = load_trained(run, settings, task.operators)
    evaluate(trained, task, finished.models, plan, settings)


def evaluate_command(run_paths: Sequence[str], *, output: str | None, **options: Any) -> None:
    """Evaluates the policies of runs, and several together too."""
    show_warnings()
    use_one_thread()
    if len({Path(path).resolve() for path in run_paths}) < len(run_paths):
        raise UserError("a run is named twice: name each once")
    if output and Path(output).exists() and not Path(output).is_dir():
        raise UserError(f"--output {output} is a file: name a directory")
    if output and len(run_paths) > 1:
        raise UserError("--output is for one run: leave it out, each run keeps its own results")
    objectives = {load_run(RunDirectory(path))[0].objective for path in run_paths}
    if len(objectives) > 1:
        raise UserError(
            f"the runs have different objectives ({', '.join(sorted(objectives))}), so their "
            "scores do not compare: evaluate each by itself"
        )
    evaluated = []
    for path in run_paths:
        if len(run_paths) > 1:
            print(f"\n{printable(path)}")
        evaluated.append(_evaluate_run(path, output=output, **options))
    if len(evaluated) > 1:
        together = compare_together(evaluated)
        conclusion = decide_together(together, margin=options["margin"])
        print(f"\n{several_as_text(together, conclusion)}")


def _evaluate_run(
    run_path: str,
    *,
    dataset: str | None,
    num_questions: int | None,
    num_training: int,
    output: str | None,
    margin: float,
    twins: int | None,
    contenders: Sequence[str],
    changes: dict[str, Any],
) -> Evaluated:
    """Evaluates one run's policy."""
    run = RunDirectory(run_path)
    of_run, operators = load_run(run)
    settings = changed(of_run, changes)
    if changes.get("judge_model") and not may_ask_judge(settings):
        raise UserError(
            f"the run's objective, {settings.objective}, asks no judge: leave out --judge-model"
        )
    trained = load_trained(run, settings, operators)
    task = load_task(settings, operators)
    check_same_task(run, task)
    heldout = other_heldout(dataset, task, settings) if dataset else task.heldout
    directory = Path(output) if output else run.path / _name(dataset, of_run, settings)
    script = Path(sys.argv[0]).name
    typed = f"python {script}" if script.endswith(".py") else script
    plan = make_plan(
        heldout,
        task.train,
        directory,
        again=f"{typed} {shlex.join(sys.argv[1:])}",
        dataset=dataset or settings.dataset,
        num_questions=_how_many(num_questions, of_run, task, dataset),
        num_training=num_training,
        margin=margin,
        twins=most_pairs(settings.objective, twins),
    )
    to_open = replace(model_settings(settings, operators), contenders=contenders)
    with open_models(to_open) as models:
        say_servers(models, settings)
        return evaluate(trained, task, models, plan, settings)


def _how_many(asked: int | None, of_run: Settings, task: Task, dataset: str | None) -> int | None:
    """The held-out questions to ask: as many as the run's own evaluation, if nothing is said."""
    if asked is not None:
        return asked or None
    own = None if dataset else of_run.eval_questions
    if own is not None and own < len(task.heldout):
        print(
            f"note: {own:,} of {counted(len(task.heldout), 'held-out question')} are asked, as the "
            "run's --eval-questions says; --num-questions all asks all",
            file=sys.stderr,
        )
    return own


def other_heldout(dataset: str, task: Task, settings: Settings) -> list[Question]:
    """The held-out questions of another file, without those that the run was trained on."""
    heldout = split_questions(load_questions(dataset))[1]
    trained_on = {question.meaning for question in task.train}
    unseen = [question for question in heldout if question.meaning not in trained_on]
    if len(unseen) < len(heldout):
        logger.warning(
            "%s of %s left out: trained on by the run",
            counted(len(heldout) - len(unseen), "question"),
            dataset,
        )
    if task.objective.needs_reference:
        for question in unseen:
            if not question.reference:
                raise UserError(
                    f"question '{question.id}' of {dataset} has no reference, which the run's "
                    f"objective {settings.objective} needs.\n"
                    "Give every question one, or evaluate a run trained with --objective helpful"
                )
    return unseen


def make_plan(
    heldout: Sequence[Question],
    training: Sequence[Question],
    directory: Path,
    *,
    again: str,
    dataset: str | None = None,
    num_questions: int | None = None,
    num_training: int = TRAINING_QUESTIONS,
    margin: float = MARGIN,
    twins: int | None = None,
) -> Plan:
    """The questions to ask: all, or samples that do not change with the seed of a run."""
    if not heldout:
        raise UserError("no question is held out: an evaluation needs some (split: heldout)")
    chosen = sample_questions(heldout, num_questions)
    beside = sample_questions(training, num_training)
    asked = len(chosen) + len(beside)
    pairs = choose_pairs(chosen, twins_of(chosen, dataset), most=twins, asked=asked)
    return Plan(chosen, beside, directory, again, dataset, margin, pairs, len(heldout))


def evaluate(
    trained: TrainedPolicy, task: Task, models: Models, plan: Plan, settings: Settings
) -> Evaluated:
    """Asks, compares, writes and prints."""
    if note := told_of_another_score(trained.trained_under):
        print(printable(f"note: {note}"), file=sys.stderr)
    records = _measure(trained, task, models, plan, settings)
    heldout, failures = _asked_in_every_way(plan.heldout, records)
    training, failures_in_training = _asked_in_every_way(plan.training, records)
    if not heldout or not training:
        reason = (failures or failures_in_training)[0]
        raise ServerUnavailableError(f"no question could be asked in every way ({reason})")
    about = _about(trained, models, plan, settings) | {"left_out": len(failures)}
    pairs = measured_pairs(plan.pairs, records.measured)
    asked = Answers(heldout, training, pairs)
    concluded = conclude(asked, plan, about, trained.operators, models.encoder)
    print(f"\n{concluded.text}\n")
    print(printable(f"picture: {plan.directory / PICTURE}"))
    return Evaluated(heldout, concluded.findings.best_single, plan.available)


def _about(
    trained: TrainedPolicy, models: Models, plan: Plan, settings: Settings
) -> dict[str, Any]:
    """What was evaluated, and by which models."""
    return {
        "env_steps": trained.env_steps,
        "score": SCORING if trained.trained_under else None,
        TRAINED_UNDER: list(trained.trained_under),
        "objective": settings.objective,
        "dataset": plan.dataset or SHIPPED,
        "target_model": models.roles.target_model,
        "mutator_model": models.roles.mutator_model,
        "judge_model": models.roles.judge_model if may_ask_judge(settings) else None,
    }


def _measure(
    trained: TrainedPolicy, task: Task, models: Models, plan: Plan, settings: Settings
) -> Records:
    """The questions of the plan, asked; what an interruption leaves is kept."""
    asking = Asking(
        trained.operators,
        trained.view,
        task.objective,
        models.roles,
        trained.policy,
        contenders_of(models, trained.operators),
        trained.keeper,
    )
    with refused(f"cannot write to {plan.directory}"):
        records = Records(plan.directory, conditions(asking, settings, task, models))
    try:
        _ask(plan, asking, models, records, settings.max_workers)
    except (KeyboardInterrupt, ServerUnavailableError):
        done = sum(not measured.failure for measured in records.measured.values())
        kept = f"{counted(done, 'question')} done and kept"
        print(f"\n{kept}; go on with: {printable(plan.again)}", file=sys.stderr)
        raise
    return records


def _ask(
    plan: Plan, asking: Asking, models: Models, records: Records, max_workers: int | None
) -> None:
    """Asks what has not been asked yet, each question in every way."""
    runner = scoring_runner(asking.objective, models, max_workers)
    singles = replace(asking, policy=None, contenders=())
    waiting = [(q, asking) for q in plan.heldout] + [(q, singles) for q in plan.training]
    waiting += twins_to_ask(plan.pairs, asking)
    total = len(waiting)
    waiting = [(q, how) for q, how in waiting if fingerprint(q) not in records.measured]
    failed = 0
    with Doing(total, total - len(waiting), doing="evaluating", noun="question") as progress:
        models.client.on_wait = lambda: _show_pause(progress.bar, models.client.outage())
        for _, measured in runner.each(measure_flow(question, how) for question, how in waiting):
            failed += bool(measured.failure)
            records.add(measured)
            counts = models.client.counts()
            progress.update(f"{counts.model_calls} calls {failed} failed")
            if measured.failure and (reason := models.client.why_gone()):
                raise ServerUnavailableError(reason)


def _show_pause(bar: Any, outage: Outage | None) -> None:
    if outage is not None:
        bar.set_description_str(printable(str(outage)))


def _asked_in_every_way(
    questions: Sequence[Question], records: Records
) -> tuple[list[Measured], list[str]]:
    """Those without a failure, and the reasons of the others."""
    found = [records.measured.get(fingerprint(question)) for question in questions]
    good = [one for one in found if one is not None and not one.failure]
    return good, [one.failure for one in found if one is not None and one.failure]


def _name(dataset: str | None, of_run: Settings, settings: Settings) -> str:
    """The directory of an evaluation: what is not as in the run is in its name."""
    parts = [EVALUATION, Path(dataset).stem if dataset else ""]
    if settings.target_model != of_run.target_model:
        parts.append(settings.target_model or "")
    if settings.mutator_model != of_run.mutator_model:
        parts.append(f"mutator_{settings.mutator_model}")
    if settings.rewriter != of_run.rewriter:
        parts.append(f"rewriter_{Path(settings.rewriter or SHIPPED).stem}")
    if may_ask_judge(settings) and settings.judge_model != of_run.judge_model:
        parts.append(f"judge_{settings.judge_model}")
    return "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts if part)
