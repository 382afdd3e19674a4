"""Tells whether a trained policy makes answers better on questions that it has not seen."""

from functools import partial

from query_mutator.base.terminal import leave
from query_mutator.cli import subcommand

main = partial(subcommand, "evaluate", prog="evaluate_query_mutator.py")

if __name__ == "__main__":
    leave(main())
