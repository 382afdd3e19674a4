"""Prints the messy twins that are generated, as JSONL.

python -m query_mutator.data.messing            # the rows of twins.jsonl by this hand
python -m query_mutator.data.messing --seed 1   # others
"""

from __future__ import annotations

import argparse
import json

from query_mutator.data import load_questions
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.data.messing.rows import twin_rows, untwinned

TWINS_FILE = DEFAULT_FILE.with_name("twins.jsonl")


def main() -> None:
    """Prints one row a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="chooses styles, words and slips")
    lines = TWINS_FILE.read_text(encoding="utf-8").splitlines()
    wanted = untwinned(load_questions(), map(json.loads, lines))
    for row in twin_rows(wanted, parser.parse_args().seed):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
