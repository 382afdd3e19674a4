"""What a rewriter alone closes of the gap between clear and messy questions, and what it harms.

    python -m benchmarks.rewriter --pairs 587
    python -m benchmarks.rewriter --rewriter rewriters/NAME --split train --pairs 200
    python -m benchmarks.rewriter --rewrites rewrites.jsonl   # every rewrite, to be read

Each pair is asked clearly and messily, unchanged and by the operators. What is asked twice is
answered from the cache.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.asking import open_asker, settings_for
from query_mutator.base.errors import UserError
from query_mutator.base.progress import Doing
from query_mutator.base.tables import layout
from query_mutator.base.terminal import OneLineParser, as_main, leave
from query_mutator.data import load_questions, load_twins
from query_mutator.data.twins import CLEAR
from query_mutator.evaluation.apart import FACTS
from query_mutator.evaluation.gap import SCORE, find_gap
from query_mutator.evaluation.gap_text import gap_as_text
from query_mutator.evaluation.measuring import UNCHANGED, Measured
from query_mutator.evaluation.moved import with_interval
from query_mutator.evaluation.pairs import choose_pairs
from query_mutator.evaluation.statistics import paired_differences
from query_mutator.operators import named_operators

Sides = list[tuple[Measured, Measured]]


def run(argv: Sequence[str] | None) -> int:
    """Asks, and prints the tables."""
    parser = OneLineParser(prog="python -m benchmarks.rewriter", description=__doc__)
    add = parser.add_argument
    add("--rewriter", help="an adapter (default: the shipped one; none: the model by itself)")
    add("--operators", default="clarify,tidy", help="asked on both sides, the first is judged")
    add("--split", choices=("heldout", "train"), default="heldout")
    add("--pairs", type=int, default=587)
    add("--no-faithful", action="store_true", help="let every rewrite through")
    add("--rewrites", type=Path, help="a file for the rewrites of the first operator")
    args = parser.parse_args(argv)
    names = args.operators.split(",")
    sides = ask(args, names)
    told = "\n\n".join(tables(sides, names))
    if args.rewrites:
        _write(args.rewrites, sides, names[0])
    print(told)
    return 0


def ask(args: argparse.Namespace, names: Sequence[str]) -> Sides:
    """The clear and the messy wording of each pair, in every way."""
    questions = [question for question in load_questions() if question.split == args.split]
    pairs = choose_pairs(questions, load_twins(), most=args.pairs, asked=len(questions))
    operators = named_operators(names)
    settings = settings_for(operators, rewriter=args.rewriter, faithful=not args.no_faithful)
    both = [question for pair in pairs for question in (pair.clear, pair.messy)]
    found: dict[str, Measured] = {}
    doing = Doing(len(both), 0, doing="asking", noun="question")
    with open_asker(operators, settings) as asker, doing as progress:
        for measured in asker.each(both):
            if not measured.failure:
                # The rewriter alone stands where an evaluation has its policy.
                found[measured.id] = replace(measured, policy=measured.ways[names[0]])
            progress.update(f"{len(found):,} answered")
    return [
        (found[pair.clear.id], found[pair.messy.id])
        for pair in pairs
        if pair.clear.id in found and pair.messy.id in found
    ]


def tables(sides: Sides, names: Sequence[str]) -> list[str]:
    """The gap and what closes it, the same by style, and what comes of clear questions."""
    gap = find_gap(sides, named_operators(names))
    if gap is None:
        raise UserError(
            "too many calls failed: of no pair were both wordings answered. Try again: what was "
            "answered is in the cache"
        )
    text = gap_as_text(gap, names[0])[:-1]
    return [*text, _by_style(sides, names[0]), *_on_clear(sides, names)]


def _by_style(sides: Sides, name: str) -> str:
    twins = load_twins()
    groups: dict[str, Sides] = defaultdict(list)
    for clear, messy in sides:
        twin = twins[messy.id.split("~")[0]]
        groups["typed as such" if twin.style == CLEAR else twin.style].append((clear, messy))
    rows: list[tuple[str, ...]] = [
        ("messy", "pairs", "facts", f"facts, {name}", "facts, clear", "left alone")
    ]
    for style, chosen in sorted(groups.items()):
        columns = [
            [_facts(messy, UNCHANGED) for _, messy in chosen],
            [_facts(messy, name) for _, messy in chosen],
            [_facts(clear, UNCHANGED) for clear, _ in chosen],
            [float(_left_alone(messy, name)) for _, messy in chosen],
        ]
        means = (f"{sum(column) / len(column):.3f}" for column in columns)
        rows.append((style, str(len(chosen)), *means))
    return layout(rows, indent="  ")


def _on_clear(sides: Sides, names: Sequence[str]) -> list[str]:
    clear = [one for one, _ in sides]
    groups = [one.meaning for one in clear]
    rows: list[tuple[str, ...]] = [("on clear questions", SCORE, FACTS, "left alone")]
    for name in names:
        gains = {
            SCORE: [one.ways[name].score - one.ways[UNCHANGED].score for one in clear],
            FACTS: [_facts(one, name) - _facts(one, UNCHANGED) for one in clear],
        }
        found = paired_differences(gains, groups=groups)
        alone = sum(_left_alone(one, name) for one in clear)
        rows.append((name, *map(with_interval, found.values()), f"{alone / len(clear):.3f}"))
    return [layout(rows, indent="  ")]


def _facts(measured: Measured, way: str) -> float:
    return float(measured.ways[way].terms[FACTS]["value"])


def _left_alone(measured: Measured, way: str) -> bool:
    return measured.ways[way].rewritten_question == measured.question


def _write(file: Path, sides: Sides, name: str) -> None:
    with file.open("w", encoding="utf-8") as out:
        for clear, messy in sides:
            for one in (messy, clear):
                way = one.ways[name]
                row = {
                    "typed": one.question,
                    "rewrite": way.rewritten_question,
                    "meant": clear.question,
                    "score": way.score - one.ways[UNCHANGED].score,
                }
                out.write(json.dumps(row, ensure_ascii=False) + "\n")


main = as_main(run)

if __name__ == "__main__":
    leave(main())
