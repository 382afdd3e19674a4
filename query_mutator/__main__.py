"""`python -m query_mutator SUBCOMMAND`, where the command is not installed."""

from query_mutator.cli import run_and_leave

run_and_leave()
