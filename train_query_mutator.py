"""Trains a policy that rewrites questions so that a language model answers them well."""

from functools import partial

from query_mutator.base.terminal import leave
from query_mutator.cli import subcommand

main = partial(subcommand, "train", prog="train_query_mutator.py")

if __name__ == "__main__":
    leave(main())
