"""Compares learners at equal numbers of steps, on a simulated task with a known optimum."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from command_line import OneLineParser, exit_code, leave
from training.flags import at_least

BUDGETS = (250, 500, 1000, 2000)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--seeds", type=at_least(1), default=10, help="tasks, each its own seed")
    parser.add_argument("--output", type=Path, help="folder for learning.json and learning.png")
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    args = build_parser().parse_args(argv)
    import torch
    from tqdm import tqdm

    from benchmarks.learning.learners import LEARNERS
    from benchmarks.learning.report import as_text, draw, summarised
    from benchmarks.learning.tasks import observe, simulated_task
    from data import load_questions

    torch.set_num_threads(1)
    questions = load_questions()
    observed = observe(questions)
    tasks = [simulated_task(seed, questions, observed) for seed in range(args.seeds)]
    shares: dict[str, Any] = {}
    for name, learner in tqdm(LEARNERS.items(), disable=None):
        rows = []
        for seed, task in enumerate(tasks):
            values = learner(task, seed, BUDGETS)
            rows.append([task.share_of_gap(values[budget]) for budget in BUDGETS])
        shares[name] = np.array(rows)
    results = summarised(shares, BUDGETS)
    print(as_text(results, BUDGETS, args.seeds))
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        content = {"budgets": BUDGETS, "seeds": args.seeds, "results": results}
        (args.output / "learning.json").write_text(json.dumps(content, indent=2) + "\n")
        print(f"picture: {draw(results, BUDGETS, args.output / 'learning.png')}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return exit_code(lambda: run(argv))


if __name__ == "__main__":
    leave(main())
