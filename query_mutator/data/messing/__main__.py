"""Prints the messy twins that are generated, as JSONL.

python -m query_mutator.data.messing            # the rows of twins.jsonl by this hand
python -m query_mutator.data.messing --seed 1   # others
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main
from query_mutator.data import load_questions
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.data.messing.rows import twin_rows, untwinned

TWINS_FILE = DEFAULT_FILE.with_name("twins.jsonl")


def run(argv: Sequence[str] | None = None) -> int:
    """Prints one row a line; returns the exit code."""
    parser = OneLineParser(prog="python -m query_mutator.data.messing", description=__doc__)
    parser.add_argument("--seed", type=at_least(0), default=0, help="chooses styles and words")
    seed = parser.parse_args(argv).seed
    lines = TWINS_FILE.read_text(encoding="utf-8").splitlines()
    for row in twin_rows(untwinned(load_questions(), map(json.loads, lines)), seed):
        print(json.dumps(row, ensure_ascii=False))
    return 0


main = as_main(run)

if __name__ == "__main__":
    raise SystemExit(main())
