"""Turns texts into batches of a fixed number of tokens that waste little and anyone can repeat."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from batching.commands import analysis, data, generate, gym, lengths, plans, trajectories
from batching.commands.parts import run_commands
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import as_main, leave

GROUPS = (lengths, analysis, plans, generate, gym, trajectories, data)
ORDER = "in this order: lengths build, suggest, plan build, generate (docs/token_batching.md)"


def run(argv: Sequence[str] | None = None, prog: str = "python -m batching") -> int:
    """What the command does; errors are raised."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv[:1] == ["train"]:
        raise UserError("training is a command of query-mutator: query-mutator train sft …")
    return run_commands(argv, prog, __doc__, [group.add_commands for group in GROUPS], ORDER)


main = as_main(run)

if __name__ == "__main__":
    leave(main())
