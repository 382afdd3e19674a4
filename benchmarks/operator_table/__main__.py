"""Asks questions unchanged and by every operator, and keeps a row for each: what learners are
developed on.

    python -m benchmarks.operator_table --output table.jsonl --questions 900
    python -m benchmarks.operator_table --output table.jsonl --show
    python -m benchmarks.learning --table table.jsonl

Clear and messy wordings are questions of their own. Any beginning of a table is a fair sample; one
that was interrupted goes on with the same command.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from query_mutator.base.errors import ServerUnavailableError, UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main, counted, leave, show_warnings

MAX_OUTAGE_S = 600.0
"""How long calls wait while no server answers, as in training."""


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(
        prog="python -m benchmarks.operator_table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="FILE", help="the table; goes on if there")
    add("--show", action="store_true", help="only print what the table says so far")
    add("--split", choices=("train", "heldout", "all"), default="all")
    add("--questions", type=at_least(1), metavar="N", help="so many (default: all)")
    add("--operators", default="", metavar="A,B", help="names (default: the default set)")
    add("--rewriter", metavar="PATH",
        help="an adapter (default: the shipped one; none: the model by itself)")  # fmt: skip
    add("--max-tokens-answer", type=at_least(1), default=40, metavar="N", help="default: 40")
    add("--dataset", metavar="FILE", help="questions (default: the shipped, with their twins)")
    add("--server", default="embedded", help="a URL (default: embedded)")
    add("--target-model", metavar="NAME", help="answers (default: the server's only one)")
    add("--mutator-model", metavar="NAME", help="rewrites (default: the target model)")
    add("--no-cache", action="store_true", help="make every call, also where it was made before")
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    given = sys.argv[1:] if argv is None else list(argv)
    args = build_parser().parse_args(given)
    show_warnings()
    from benchmarks.operator_table.gains import as_text
    from benchmarks.operator_table.rows import read_table
    from query_mutator.base.locks import only_writer

    if args.show:
        print(as_text(read_table(args.output)))
        return 0
    if not args.output.parent.is_dir():
        raise UserError(f"there is no directory {args.output.parent}: name another file")
    with only_writer(args.output):
        print(as_text(make(args, again=shlex.join(given))))
    return 0


def make(args: argparse.Namespace, *, again: str) -> Any:
    """The table, with a row for each question that is asked for; those it has are not asked."""
    from benchmarks.asking import open_asker, settings_for
    from benchmarks.operator_table.asking import ask, calls_needed, conditions
    from benchmarks.operator_table.questions import wordings
    from benchmarks.operator_table.rows import TableFile, read_table
    from query_mutator.data import load_questions, twins_of
    from query_mutator.evaluation.measuring import fingerprint
    from query_mutator.operators import named_operators

    questions = load_questions(args.dataset)
    ordered = wordings(questions, twins_of(questions, args.dataset))
    wanted = [one for one in ordered if args.split in ("all", one.question.split)]
    wanted = wanted[: args.questions]
    if not wanted:
        raise UserError(f"there is no question in the split {args.split}")
    operators = named_operators([name.strip() for name in args.operators.split(",") if name])
    changes: dict[str, Any] = {"cache_file": None} if args.no_cache else {}
    settings = settings_for(
        operators,
        rewriter=args.rewriter,
        server=args.server,
        target_model=args.target_model,
        mutator_model=args.mutator_model,
        max_tokens_answer=args.max_tokens_answer,
        max_outage_s=MAX_OUTAGE_S,
        **changes,
    )
    with open_asker(operators, settings) as asker:
        file = TableFile(args.output, conditions(asker, settings))
        found = {id: row.sha256 for id, row in file.rows.items()}
        ids = {one.question.id: fingerprint(one.question) for one in wanted}
        file.drop([id for id in ids if found.get(id, ids[id]) != ids[id]])
        left = [one for one in wanted if one.question.id not in file.rows]
        print(
            f"{counted(len(left), 'question')} to ask in {len(operators) + 1} ways: at most "
            f"{counted(calls_needed(len(left), operators), 'call')}",
            file=sys.stderr,
        )
        try:
            failed = ask(left, asker, file, done=len(wanted) - len(left))
        except (KeyboardInterrupt, ServerUnavailableError):
            # What is on disk: Ctrl-C may have come between a row and its being counted.
            kept = len(read_table(args.output).rows)
            print(
                f"\n{counted(kept, 'row')} kept; go on with: "
                f"python -m benchmarks.operator_table {again}",
                file=sys.stderr,
            )
            raise
        file.sort([one.question.id for one in ordered])
        if failed:
            print(
                f"{counted(failed, 'question')} left out, as a call failed; the same command asks "
                "them again",
                file=sys.stderr,
            )
        return file.table()


main = as_main(run)

if __name__ == "__main__":
    leave(main())
