"""What the training command does, from settings to exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from command_line import show_warnings
from errors import ServerUnavailableError, UserError
from training.run_directory import CONFIG, RunDirectory, default_run_dir
from training.settings import Settings, absolute_paths, hints
from training.setup import (
    EMBEDDED_MAX_REWRITES,
    MAX_REWRITES,
    Task,
    load_task,
    model_options,
    versions,
)

MAY_CHANGE = {
    "batch_size",
    "use_batching",
    "server",
    "timeout",
    "load_timeout",
    "retries",
    "num_env_steps",
    "save_interval",
    "log_interval",
}
"""What a resumed run may do differently without being another run."""


def run_training(settings: Settings) -> int:
    """Trains as the settings say; returns the exit code."""
    show_warnings()
    settings = absolute_paths(settings)
    run = RunDirectory(settings.run_dir or default_run_dir())
    task = load_task(settings)
    if settings.resume:
        run.check_resumable()
        _check_unchanged(run, settings, task)
    else:
        run.check_new()
    for line in hints(settings):
        print(line, file=sys.stderr)

    from model_client.session import open_models

    with open_models(**model_options(settings)) as models:
        connection = models.connection
        print(
            f"server: {connection.why}; mutator {models.roles.mutator_model}, "
            f"target {models.roles.target_model}",
            file=sys.stderr,
        )
        if settings.max_rewrites is None:
            embedded = connection.embedded is not None
            default = EMBEDDED_MAX_REWRITES if embedded else MAX_REWRITES
            settings = replace(settings, max_rewrites=default)
        return _train(settings, task, models, run)


def _train(settings: Settings, task: Task, models: Any, run: RunDirectory) -> int:
    from training.trainer import Trainer

    assert settings.max_rewrites is not None
    trainer = Trainer(settings, task, models, run, max_rewrites=settings.max_rewrites)
    if settings.resume:
        trainer.restore()
        print(f"resuming {run.path} at step {trainer.counts.env_steps}", file=sys.stderr)
    else:
        trainer.begin()
        run.create()
        run.write_json(CONFIG, _config(settings, task, models))
    print(
        f"{run.path}: {settings.num_env_steps} steps on {len(task.train)} questions with "
        f"{len(task.operators)} operators; Ctrl-C saves and stops",
        file=sys.stderr,
    )
    try:
        summary = trainer.train()
    except KeyboardInterrupt:
        # A second Ctrl-C must not tear what the first one asked for.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        trainer.save()
        print(f"\ninterrupted; go on with: {_resume_command(run.path)}", file=sys.stderr)
        return 130
    except ServerUnavailableError as error:
        trainer.save()
        print(
            f"\nerror: the model server stopped answering: {error}\n"
            f"The work is saved; go on with: {_resume_command(run.path)}",
            file=sys.stderr,
        )
        return 1

    from experiments.show import show_run

    show_run(run.path)
    print(f"{summary['env_steps']} steps in {summary['wall_time_s']:.0f} s, ", end="")
    print(
        f"{summary['model_calls']} model calls, {summary['failed_calls']} failed, "
        f"{summary['cache_hits']} answered from memory"
    )
    print(f'use it:  python mutate_query.py --run {run.path} "your question"')
    return 0


def _config(settings: Settings, task: Task, models: Any) -> dict[str, Any]:
    return {
        "settings": settings.stored(),
        "mutator_model": models.roles.mutator_model,
        "target_model": models.roles.target_model,
        "server": models.connection.why,
        "dialect": models.connection.dialect.name,
        "operators": [operator.name for operator in task.operators],
        "questions": {"train": len(task.train), "heldout": len(task.heldout)},
        "task_sha256": task.fingerprint(),
        "versions": versions(),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _check_unchanged(run: RunDirectory, settings: Settings, task: Task) -> None:
    """Refuses to resume with what would make it another run, and names it."""
    config = run.read_json(CONFIG)
    before = config.get("settings", {})
    for name, value in settings.stored().items():
        if name in MAY_CHANGE or name not in before:
            continue
        if before[name] != value:
            raise UserError(
                f"cannot resume {run.path} with --{name.replace('_', '-')} {value}: "
                f"the run has {before[name]}; start a new run for that"
            )
    if config.get("task_sha256") != task.fingerprint():
        raise UserError(
            f"cannot resume {run.path}: its questions or operators have changed since; "
            "start a new run, or bring them back"
        )


def _resume_command(path: Path) -> str:
    return f"python train_query_mutator.py --resume --run-dir {shlex.quote(os.fspath(path))}"
