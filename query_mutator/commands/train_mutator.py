"""Trains a rewriter of one's own: a language model, fine-tuned on questions asked both ways."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.tuning.settings import build_parser, parse_settings


def run(argv: Sequence[str] | None = None, prog: str = "train_mutator_lm.py") -> int:
    """What the command does; errors are raised."""
    settings = parse_settings(build_parser(prog, __doc__), argv)
    # Heavy imports come late: --help and a wrong flag answer at once.
    from query_mutator.tuning.command import train_mutator

    return train_mutator(settings)
