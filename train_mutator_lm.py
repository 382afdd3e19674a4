"""Trains a rewriter of one's own: a language model, fine-tuned on questions asked both ways."""

from functools import partial

from query_mutator.base.terminal import leave
from query_mutator.cli import subcommand

main = partial(subcommand, "train-mutator", prog="train_mutator_lm.py")

if __name__ == "__main__":
    leave(main())
