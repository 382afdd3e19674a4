"""`query-mutator rescore`: a run and its evaluations by the score of today, without a call."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError, refused
from query_mutator.base.files import replaced_directory
from query_mutator.base.locks import only_writer
from query_mutator.base.stored import stored_as
from query_mutator.base.terminal import counted, printable, progress_bar, show_warnings
from query_mutator.base.untrusted import read_lines
from query_mutator.data import Question, load_questions, twins_of
from query_mutator.evaluation.command import EVALUATION, SHIPPED, other_heldout
from query_mutator.evaluation.concluding import FIGURES, Answers, Plan, conclude
from query_mutator.evaluation.defaults import MARGIN
from query_mutator.evaluation.earlier import Asked, Earlier, check_alike, read_earlier
from query_mutator.evaluation.logged_figures import LoggedFigures, side_by_side
from query_mutator.evaluation.pairs import measured_pairs
from query_mutator.evaluation.records import RECORDS, json_lines
from query_mutator.evaluation.scoring_again import Again, TransitionsAgain, measured_again
from query_mutator.evaluation.trained_policy import same_task, use_one_thread
from query_mutator.models.encoders import Encoder, load_encoder
from query_mutator.models.settings import PACKAGED_MODEL
from query_mutator.objectives.version import SCORING, UNTOLD, is_versioned
from query_mutator.runs.directory import SUMMARY, TRANSITIONS, RunDirectory
from query_mutator.runs.scores import TRAINED_UNDER, trained_under
from query_mutator.runs.settings import Settings
from query_mutator.runs.task import Task, load_run, load_task
from query_mutator.runs.transitions import read_log

logger = logging.getLogger(__name__)

RESCORED = "rescored"
ABOUT = ("dataset", "target_model", "mutator_model", "judge_model")
"""What an evaluation says of the answers that it is of."""


@dataclass(frozen=True)
class LoggedRun:
    """A run whose answers can be scored again."""

    directory: RunDirectory
    settings: Settings
    task: Task
    again: Again
    trained_under: Sequence[int]
    same_task: bool
    """Whether questions, operators and the user's own objective are those of the training."""

    @property
    def score(self) -> int | None:
        """The version of the score of today; None where the objective is the user's own."""
        return SCORING if is_versioned(self.settings.objective) else None


def rescore_command(run_paths: Sequence[str]) -> None:
    """Scores the runs again, one after the other, and prints what has changed."""
    show_warnings()
    use_one_thread()
    for number, path in enumerate(run_paths):
        if number:
            print()
        rescore_run(path)


def rescore_run(path: str) -> None:
    """Writes a run's directory `rescored`, whole or not at all, and prints what has changed."""
    run = _logged_run(path)
    target = run.directory.path / RESCORED
    _check_ours(target)
    with (
        refused(f"cannot write to {target}"),
        only_writer(target),
        replaced_directory(target) as new,
    ):
        before, after = _rescore_transitions(run, new)
        evaluations = dict(_rescore_evaluations(run, new))
        summary = {
            "score": run.score,
            TRAINED_UNDER: list(run.trained_under),
            "same_task": run.same_task,
            "kept_terms": sorted(run.again.kept),
            "as_logged": before,
            "rescored": after,
            "evaluations": evaluations,
        }
        RunDirectory(new).write_json(SUMMARY, summary)
    for line in _lines(run, summary):
        print("\n".join(map(printable, line.split("\n"))))


def _logged_run(path: str) -> LoggedRun:
    directory = RunDirectory(path)
    settings, operators = load_run(directory)
    task = load_task(settings, operators)
    if not task.objective.scores_again:
        raise UserError(
            f"cannot rescore {path}: its objective {settings.objective} makes calls of its own, "
            "and what they said is not logged;\nevaluate the run instead, which asks again"
        )
    questions = {question.id: question for question in load_questions(settings.dataset)}
    again = Again(task.objective, _local_encoder(path, settings), questions)
    scores = trained_under(directory, settings.objective)
    return LoggedRun(directory, settings, task, again, scores, same_task(directory, task))


def _local_encoder(path: str, settings: Settings) -> Encoder:
    name = settings.embedding_model
    if name != PACKAGED_MODEL and "/" not in name and not os.path.isdir(os.path.expanduser(name)):
        raise UserError(
            f"cannot rescore {path}: its embedding model {name} is on a server, and no call is "
            "made;\nevaluate the run instead"
        )
    return load_encoder(name)


def _check_ours(target: Path) -> None:
    """Refuses to replace what no rescoring has written."""
    if target.exists() and not (target / SUMMARY).is_file():
        raise UserError(f"{target} was not written by rescore: move it away")


def _rescore_transitions(run: LoggedRun, new: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Writes the log by today's score; the figures of the two."""
    log = run.directory.transitions
    before, after = LoggedFigures(), LoggedFigures()
    total = sum(1 for _ in read_lines(log, "the log of a run,"))
    steps = 0
    with (
        progress_bar(total, 0, doing="rescoring ") as bar,
        (new / TRANSITIONS).open("w", encoding="utf-8", errors="replace", newline="\n") as file,
    ):
        for one in TransitionsAgain(run.again, log).each(read_log(run.directory.path)):
            before.add(one.before, opens=one.opens)
            after.add(one.after, opens=one.opens)
            file.write(json_lines([one.line]))
            steps += 1
            bar.update()
    if steps < total:
        logger.warning(
            "%s ends in the middle of a line: rescored %s before it", log, counted(steps, "step")
        )
    if not steps:
        raise UserError(f"{run.directory.path} has made no step yet: there is nothing to rescore")
    return before.plain(), after.plain()


def _rescore_evaluations(run: LoggedRun, new: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Writes every evaluation by today's score; its name, and its sentence before and after."""
    for directory in sorted(run.directory.path.glob(f"{EVALUATION}*")):
        if not (directory / RECORDS).is_file():
            continue
        try:
            earlier = read_earlier(directory)
            sentence = _rescore_evaluation(run, earlier, new / directory.name)
        except (UserError, ValueError) as error:
            shutil.rmtree(new / directory.name, ignore_errors=True)
            logger.warning("%s is left out: %s", directory, error)
            continue
        yield directory.name, {"as_logged": earlier.sentence, "rescored": sentence}


def _rescore_evaluation(run: LoggedRun, earlier: Earlier, new: Path) -> str:
    """Writes one evaluation by today's score; how it concludes."""
    figures = earlier.figures
    scores = figures.get(TRAINED_UNDER, [UNTOLD] if run.score else [])
    about = {
        "env_steps": figures.get("env_steps"),
        "score": run.score,
        TRAINED_UNDER: stored_as(list[int], scores, TRAINED_UNDER),
        "objective": run.settings.objective,
        **{name: figures.get(name) for name in ABOUT},
        "left_out": earlier.count("left_out"),
    }
    margin = figures.get("margin")
    questions, dataset = _asked(run, earlier)
    answers = _answers(run, earlier, questions, dataset)
    plan = Plan(
        questions,
        run.task.train,
        new,
        again="",
        margin=margin if isinstance(margin, float) else MARGIN,
    )
    new.mkdir(mode=0o700)
    told = {one.sha256: one.to_json() for one in (*answers.heldout, *answers.training)}
    told |= {one.sha256: one.to_json() for pair in answers.pairs for one in pair}
    text = json_lines([{"rescored": earlier.header}, *told.values()])
    (new / RECORDS).write_text(text, encoding="utf-8", errors="replace")
    concluded = conclude(answers, plan, about, run.task.operators, run.again.encoder)
    return concluded.conclusion.sentence


def _answers(
    run: LoggedRun, earlier: Earlier, questions: Sequence[Question], dataset: str | None
) -> Answers:
    """What an evaluation was made of, by today's score."""
    asked, again = Asked(earlier.measured), run.again
    heldout = asked.of_the_verdict(questions, earlier.count("questions"))
    training = asked.of_the_verdict(run.task.train, earlier.count("training_questions"))
    check_alike(heldout, training)
    by_id = {one.id: one for one in questions}
    chosen = [by_id[one.id] for one in heldout]
    pairs = asked.pairs_of_the_verdict(chosen, twins_of(chosen, dataset), earlier.pairs)
    sides = {one.id: one for pair in pairs for one in (pair.clear, pair.messy)}
    twins = [asked.find(side) for name, side in sides.items() if name not in by_id]
    others = Again(again.objective, again.encoder, by_id | sides, again.kept)
    heldout = measured_again(others, heldout)
    measured = [*heldout, *measured_again(others, [one for one in twins if one])]
    return Answers(
        heldout,
        measured_again(again, training),
        measured_pairs(pairs, {one.sha256: one for one in measured}),
    )


def _asked(run: LoggedRun, earlier: Earlier) -> tuple[list[Question], str | None]:
    """The held-out questions that an evaluation was of, and their file if they are not shipped."""
    dataset = earlier.figures.get("dataset")
    # Where the run's own questions are asked, their file may have been moved since.
    if earlier.directory.name == EVALUATION or dataset in (run.settings.dataset, SHIPPED):
        return run.task.heldout, run.settings.dataset
    if not isinstance(dataset, str):
        raise UserError(f"its {FIGURES} does not say which dataset it is of")
    return other_heldout(dataset, run.task, run.settings), dataset


def _lines(run: LoggedRun, summary: dict[str, Any]) -> Iterator[str]:
    """What is printed."""
    path = run.directory.path
    by = f"score {run.score}" if run.score else f"its objective {run.settings.objective}"
    yield f"{path} by {by}, without a call"
    if not run.same_task:
        yield (
            "note: its questions, operators or objective have changed since it was trained: "
            "what changed the scores may be that"
        )
    if summary["kept_terms"]:
        yield f"kept as logged, as they take calls: {', '.join(summary['kept_terms'])}"
    yield side_by_side(summary["as_logged"], summary["rescored"])
    for name, sentences in summary["evaluations"].items():
        yield f"{name}\n  as logged  {sentences['as_logged']}\n  rescored   {sentences['rescored']}"
    if not summary["evaluations"]:
        yield "no evaluation to rescore"
    yield f"written: {path / RESCORED}"
