"""`python -m batching plan verify`: is a plan the one that its lengths give?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from batching.commands.parts import (
    Commands,
    add_command,
    add_json,
    add_lengths,
    add_plan,
    open_lengths,
    print_json,
)
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import printable, show_warnings

if TYPE_CHECKING:
    from batching.generation.length_cache import LengthCache
    from batching.planning import BatchPlan


def add_verify(group: Commands) -> None:
    """`plan verify`."""
    parser = add_command(
        group, "verify", "build a plan again and tell what differs (exit code 1)", run_verify,
        example="-p plan -l lengths.jsonl",
    )  # fmt: skip
    add_plan(parser)
    add_lengths(parser, "-l", "--lengths")
    add_json(parser)


def run_verify(args: argparse.Namespace) -> int:
    """Tells whether the plan is the one that the lengths give."""
    from batching.planning import BatchPlan

    show_warnings()
    lengths = open_lengths(args.lengths)
    places = _plans_in(args.plan)
    found: dict[str, list[str]] = {}
    for place in places:
        try:
            plan = BatchPlan.load(place)
        except UserError as error:  # it is there, and not as it was written
            found[str(place)] = [str(error).split("\n")[0]]
            continue
        found[str(place)] = _differences(plan, lengths)
    wrong = sum(map(len, found.values()))
    if args.json:
        print_json({"matches": not wrong, "differences": found})
    else:
        for name, problems in found.items():
            print(f"{name}: {'differs from' if problems else 'matches'} {args.lengths}")
            for problem in problems:
                print(f"  {printable(problem)}")
    return 1 if wrong else 0


def _plans_in(path: Path) -> list[Path]:
    """The plan in a directory, or those of all its ranks."""
    from batching.planning.files import META

    ranks = sorted(path.glob("rank_*"), key=lambda one: (len(one.name), one.name))
    if not (path / META).exists() and ranks:
        return ranks
    if not (path / META).exists():
        raise UserError(f"{path} holds no plan (no {META})")
    return [path]


def _differences(plan: BatchPlan, lengths: LengthCache) -> list[str]:
    from batching.planning import verify

    problems = []
    for what, ours, theirs in (
        ("tokenizer", plan.meta.tokenizer_hash, lengths.tokenizer_hash),
        ("data set", plan.meta.dataset_hash, lengths.dataset_hash),
    ):
        if ours and theirs and ours != theirs:
            problems.append(
                f"built for another {what}: {ours[:12]}, and these are of {theirs[:12]}"
            )
    return problems + verify(plan, lengths.arrays())
