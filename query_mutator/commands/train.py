"""Trains a policy that rewrites questions so that a language model answers them well."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.runs.settings import build_parser, parse_settings


def run(argv: Sequence[str] | None = None, prog: str = "train_query_mutator.py") -> int:
    """What the command does; errors are raised."""
    settings = parse_settings(build_parser(prog, __doc__), argv)
    # Heavy imports come late: --help and a wrong flag answer at once.
    from query_mutator.evaluation.command import evaluate_finished
    from query_mutator.reports.html import report_finished
    from query_mutator.reports.show import show_run
    from query_mutator.runs.task import Finished
    from query_mutator.training.command import run_training

    def show_and_evaluate(finished: Finished) -> None:
        show_run(finished.run.path)
        try:
            if finished.settings.use_eval:
                evaluate_finished(finished)
        finally:  # an evaluation that lost its server takes nothing from what was learned
            if finished.settings.use_report:
                report_finished(finished.run.path)

    return run_training(settings, show_and_evaluate)
