"""What the training command does, from settings to exit code."""

from __future__ import annotations

import contextlib
import errno
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from query_mutator.base.errors import ServerUnavailableError, UserError
from query_mutator.base.flags import option_of
from query_mutator.base.terminal import command_line, printable, say_error, show_warnings
from query_mutator.models.backend import BackendStatus
from query_mutator.models.connect import told_digests
from query_mutator.models.session import Models, open_models
from query_mutator.objectives.version import SCORING, is_versioned, named
from query_mutator.runs.directory import CONFIG, RunDirectory, default_run_dir
from query_mutator.runs.hints import hints
from query_mutator.runs.scores import TRAINED_UNDER, trained_under
from query_mutator.runs.settings import BEFORE, Settings
from query_mutator.runs.task import (
    EMBEDDED_MAX_REWRITES,
    MAX_REWRITES,
    Finished,
    Task,
    absolute_paths,
    load_task,
    model_settings,
    say_servers,
    stored_operators,
    versions,
)
from query_mutator.training.interrupts import Interrupts

if TYPE_CHECKING:
    from query_mutator.training.trainer import Trainer

WAITED_MOSTLY = 0.75
QUEUED_LITTLE = 0.05
MAY_CHANGE = {
    "batch_size",
    "use_batching",
    "server",
    "mutator_server",
    "target_server",
    "judge_server",
    "group_by_model",
    "timeout",
    "load_timeout",
    "retries",
    "max_outage",
    "max_failed_share",
    "num_env_steps",
    "save_interval",
    "cache",
    "use_cache",
    "log_interval",
    "use_eval",
    "eval_questions",
    "eval_interval",
    "use_report",
}
"""What a resumed run may do differently without being another run."""
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
MATTER = ("torch", "numpy", "sentence-transformers")
"""Packages whose other version may change the last bits of what is learned."""


def run_training(settings: Settings, on_finished: Callable[[Finished], None]) -> int:
    """Trains as the settings say; returns the exit code.

    A finished run is shown and evaluated by the caller.
    """
    show_warnings()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: save, then stop
    settings = absolute_paths(settings)
    run = RunDirectory(settings.run_dir or default_run_dir())
    # A run keeps the operators that it began with: the default set may be another one since.
    task = load_task(settings, stored_operators(run) if settings.resume else None)
    if settings.resume:
        run.check_resumable()
        _check_unchanged(run, settings, task)
        run.take()
    else:
        run.check_new()
    for line in hints(settings):
        print(printable(line), file=sys.stderr)

    try:
        with open_models(model_settings(settings, task.operators)) as models:
            say_servers(models, settings)
            return _train(_resolved(settings, models), task, models, run, on_finished)
    finally:
        run.release()


def _resolved(settings: Settings, models: Models) -> Settings:
    """The settings with what was left open decided, so that they repeat on the same models."""
    default = EMBEDDED_MAX_REWRITES if models.connection.embedded_answers else MAX_REWRITES
    found_out = settings.server in ([], ["auto"])
    parted = settings.mutator_server or settings.target_server or settings.judge_server
    return replace(
        settings,
        server=models.connection.servers if found_out and not parted else settings.server,
        mutator_model=models.roles.mutator_model,
        target_model=models.roles.target_model,
        max_rewrites=settings.max_rewrites or default,
    )


def _train(
    settings: Settings,
    task: Task,
    models: Models,
    run: RunDirectory,
    on_finished: Callable[[Finished], None],
) -> int:
    trainer = _begun(settings, task, models, run)
    print(
        f"{printable(str(run.path))}: {settings.num_env_steps} steps on {len(task.train)} "
        f"questions with {len(task.operators)} operators; Ctrl-C saves and stops",
        file=sys.stderr,
    )
    try:
        with Interrupts(trainer.save, f"stopped; go on with: {_resume_command(run)}"):
            summary = trainer.train()
    except BaseException as error:
        return _stopped(error, run, trainer)
    counts = models.client.counts()
    waited = 1 - models.encoder.seconds / max(1e-9, summary["wall_time_s"])
    on_finished(Finished(run, settings, task, models))
    queued = counts.queue_s / counts.latency_s if counts.latency_s else 0.0
    for line in _server_lines(models.client.servers(), settings, queued=queued, waited=waited):
        print(printable(line))
    print(
        f"{summary['env_steps']} steps in {summary['wall_time_s']:.0f} s, "
        f"{summary['model_calls']} model calls, {summary['failed_calls']} failed, "
        f"{summary['cache_hits']} answered without a call\n"
        f"use it:  {command_line('mutate')} --run {printable(shlex.quote(str(run.path)))} "
        '"your question"'
    )
    return 0


def _begun(settings: Settings, task: Task, models: Models, run: RunDirectory) -> Trainer:
    """The trainer of a run that has its directory, or that has taken up its checkpoint."""
    from query_mutator.training.trainer import Trainer

    assert settings.max_rewrites is not None
    trainer = Trainer(settings, task, models, run, max_rewrites=settings.max_rewrites)
    config = _config(settings, task, models)
    if settings.resume:
        _note_differences(run.read_json(CONFIG), config)
        scores = trained_under(run, settings.objective)
        trainer.restore()
        config[TRAINED_UNDER] = _scores_of_resumed(run, scores, trainer)
        done = " (all of its steps are done)" if trainer.is_done else ""
        line = printable(f"resuming {run.path} at step {trainer.counts.env_steps}{done}")
        print(line, file=sys.stderr)
        run.write_json(CONFIG, config)
        return trainer
    try:
        trainer.begin()
    except ServerUnavailableError as error:
        raise UserError(f"the run has not begun: {error}") from error
    _write_beginning(run, trainer.save, config)
    return trainer


def _scores_of_resumed(run: RunDirectory, before: list[int], trainer: Trainer) -> list[int]:
    """The scores of a run that goes on; a line tells where another paid the steps before."""
    if not before or before[-1] == SCORING or trainer.is_done:
        return before
    if trainer.counts.env_steps == 0:
        return [SCORING]
    again = f"query-mutator rescore {shlex.quote(str(run.path))}"
    line = (
        f"warning: the steps until {trainer.counts.env_steps} were paid by {named(before)}, those "
        f"to come are paid by score {SCORING}: the curves break there; {again} gives all one score"
    )
    print(printable(line), file=sys.stderr)
    return [*before, SCORING]


def _server_lines(
    servers: Sequence[BackendStatus], settings: Settings, *, queued: float, waited: float
) -> list[str]:
    """What was found out about the servers.

    Calls spent the part `queued` of their time in line; the run the part `waited` of its time on
    calls, and not on embedding texts: where that is small, more calls at once gain nothing.
    """
    lines = []
    calls = sum(server.calls for server in servers)
    for server in servers:
        facts = []
        if len(servers) > 1:
            facts.append(f"{server.calls / max(1, calls):.0%} of the calls")
            facts.append("up" if server.up else "down")
        if settings.max_workers is None and server.limit:
            facts.append(f"given up to {server.limit} calls at once")
        if facts:
            lines.append(f"server {server.name}: {', '.join(facts)}")
    limit = sum(server.limit or 0 for server in servers)
    has_room = limit > settings.num_processes and queued < QUEUED_LITTLE
    if settings.max_workers is None and has_room and waited > WAITED_MOSTLY:
        lines.append(
            f"hint: the servers can take {limit} calls at once or more; --num-processes "
            f"{2 * limit} would make the run faster"
        )
    return lines


def _stopped(error: BaseException, run: RunDirectory, trainer: Trainer) -> int:
    """Says why a run stopped, at which step it is saved, and how to go on; a bug is raised on."""
    saved = False
    with contextlib.suppress(OSError):  # the disk may be what failed
        trainer.save()
        saved = True
    steps, resume = trainer.saved_steps, _resume_command(run)
    if isinstance(error, BrokenPipeError):  # nobody reads what is said; the work is saved
        return 1
    if isinstance(error, KeyboardInterrupt):
        line = f"interrupted; saved at step {steps}, the last whole rollout; go on with: {resume}"
        print(f"\n{printable(line)}", file=sys.stderr, flush=True)
        return 130
    if isinstance(error, FloatingPointError):  # to resume would repeat it
        say_error(
            f"{error}; start a new run with a lower --lr\n"
            f"The policy before that is kept in {run.path}"
        )
        return 1
    if isinstance(error, ServerUnavailableError):
        why, code = f"the model server stopped answering: {error}", 1
    elif isinstance(error, OSError):
        why, code = f"{error.strerror or error}: {error.filename or run.path}", 1
    elif isinstance(error, UserError):
        why, code = str(error), 2
    else:
        raise error
    state = f"The work is saved at step {steps}" if saved else "The last checkpoint stands"
    if not run.path.is_dir():
        say_error(f"{why}\nThe directory of the run has gone, and its work with it")
        return code
    room = "make room, then " if isinstance(error, OSError) and error.errno in NO_ROOM else ""
    say_error(f"{why}\n{state}; {room}go on with: {resume}")
    return code


def _resume_command(run: RunDirectory) -> str:
    return f"{command_line('train')} --resume --run-dir {shlex.quote(str(run.path))}"


def _write_beginning(run: RunDirectory, save: Callable[[], None], config: dict[str, Any]) -> None:
    """Makes the directory of a new run; one that cannot be written whole is not left behind."""
    run.create()
    try:
        save()
        run.write_json(CONFIG, config)
    except OSError as error:
        with contextlib.suppress(OSError):
            run.remove_beginning()
            run.release()
            run.path.rmdir()
        raise UserError(
            f"cannot write to {run.path}: {error.strerror}; choose another --run-dir"
        ) from error


def _config(settings: Settings, task: Task, models: Models) -> dict[str, Any]:
    return {
        "settings": settings.stored(),
        "server": models.connection.why,
        "operators": [operator.plain() for operator in task.operators],
        "questions": {"train": len(task.train), "heldout": len(task.heldout)},
        "task_sha256": task.fingerprint(),
        TRAINED_UNDER: [SCORING] if is_versioned(settings.objective) else [],
        "weights": told_digests(models.client.backends),
        "versions": versions(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _check_unchanged(run: RunDirectory, settings: Settings, task: Task) -> None:
    """Refuses to resume with what would make it another run, and names it."""
    config = run.read_json(CONFIG)
    before = {**BEFORE, **config.get("settings", {})}
    # The learning rate falls to 0 over all steps: with another number it would fall another way.
    may_change = MAY_CHANGE - ({"num_env_steps"} if settings.use_linear_lr_decay else set())
    for name, value in settings.stored().items():
        if name in may_change or name not in before:
            continue
        if before[name] != value:
            why = " and --use-linear-lr-decay" if name in MAY_CHANGE else ""
            raise UserError(
                f"cannot resume {run.path} with {option_of(name)} {value!r}: "
                f"the run has {before[name]!r}{why}; start a new run for that"
            )
    if config.get("task_sha256") != task.fingerprint():
        raise UserError(
            f"cannot resume {run.path}: its questions, operators or objective have changed; "
            "start a new run, or bring them back"
        )


def _note_differences(before: dict[str, Any], config: dict[str, Any]) -> None:
    """Tells what may keep a resumed run from being exactly the one that was interrupted."""
    versions_before, weights_before = (
        found if isinstance(found := before.get(name), dict) else {}
        for name in ("versions", "weights")
    )
    notes = [
        f"{name} is {config['versions'][name]}, the run began with {versions_before[name]}"
        for name in MATTER
        if versions_before.get(name, config["versions"][name]) != config["versions"][name]
    ]
    notes += [
        f"the weights of {model} are not those that the run began with"
        for model, digests in config["weights"].items()
        if digests and weights_before.get(model, digests) not in ([], digests)
    ]
    for note in notes:
        print(printable(f"note: {note}; it goes on, but may learn otherwise"), file=sys.stderr)
