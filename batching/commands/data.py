"""`… data`: the commands that prepare data, under the longer names that guides of others use."""

from __future__ import annotations

from collections.abc import Sequence

from batching.commands import analysis, generate, lengths, plans
from batching.commands.parts import Commands, add_group, run_commands

ABOUT = "lengths, batchplan, batching and batch: the same commands under longer names"


def add_commands(commands: Commands) -> None:
    """`data`, with all its groups."""
    add_groups(add_group(commands, "data", ABOUT))


def add_groups(commands: Commands) -> None:
    """`lengths`, `batchplan`, `batching` and `batch`."""
    lengths.add_commands(commands)
    plans.add_commands(commands, name="batchplan")
    analysis.add_commands(add_group(commands, "batching", "look at the lengths"))
    generate.add_commands(add_group(commands, "batch", "batches as files"))


def run(argv: Sequence[str] | None = None, prog: str = "query-mutator data") -> int:
    """What the command does; errors are raised."""
    return run_commands(argv, prog, ABOUT, [add_groups])
