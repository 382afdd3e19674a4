"""Trains a policy that rewrites questions so that a language model answers them well."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from command_line import leave
from errors import ServerUnavailableError, UserError
from training.settings import build_parser, parse_settings


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = build_parser("train_query_mutator.py", __doc__)
    try:
        settings = parse_settings(parser, argv)
        # Heavy imports come late: --help and a wrong flag answer at once.
        from experiments.show import show_run
        from training.command import run_training

        return run_training(settings, show_run)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ServerUnavailableError as error:
        print(f"error: the model server stopped answering: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    leave(main())
