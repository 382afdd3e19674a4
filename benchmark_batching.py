"""Measures ways to make many model calls at once, on simulated servers or on yours."""

from functools import partial

from query_mutator.base.terminal import leave
from query_mutator.cli import subcommand

main = partial(subcommand, "bench", prog="benchmark_batching.py")

if __name__ == "__main__":
    leave(main())
