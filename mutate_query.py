"""Rewrites questions with a trained policy and shows the answers before and after."""

from functools import partial

from query_mutator.base.terminal import leave
from query_mutator.cli import subcommand

main = partial(subcommand, "mutate", prog="mutate_query.py")

if __name__ == "__main__":
    leave(main())
