"""Compares learners at equal numbers of steps, on a simulated task or on measured questions."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main, leave

if TYPE_CHECKING:
    from benchmarks.learning.tasks import Task

UPDATES = (4, 8, 16, 32)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(prog="python -m benchmarks.learning", description=__doc__)
    add = parser.add_argument
    add("--seeds", type=at_least(1), default=10, help="tasks, each its own seed (default: 10)")
    add("--first-seed", type=at_least(0), default=0, help="seed of the first task (default: 0)")
    add("--updates", type=at_least(1), nargs="+", default=UPDATES, metavar="N",
        help="measure at as many steps as so many updates of PPO take (default: 4 8 16 32)",
        )  # fmt: skip
    add("--records", type=Path, metavar="FILE",
        help="learn from the questions of an evaluation (its records.jsonl), a third of them held "
        "out, another third for each seed, in place of the simulated task",
        )  # fmt: skip
    add("--dataset", metavar="FILE", help="questions for the simulated task (default: the shipped)")
    add("--output", type=Path, help="folder for learning.json and learning.png")
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    args = build_parser().parse_args(argv)
    check_can_run(args.output)
    import torch
    from tqdm import tqdm

    from benchmarks.learning.learners import LEARNERS, steps_per_update
    from benchmarks.learning.report import as_text, draw, summarised

    torch.set_num_threads(1)
    budgets = [updates * steps_per_update() for updates in sorted(set(args.updates))]
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    if args.records:
        tasks = measured_tasks(args.records, seeds)
    else:
        tasks = simulated_tasks(seeds, args.dataset)
    shares: dict[str, Any] = {}
    for name, learner in tqdm(LEARNERS.items(), disable=None):
        rows = []
        for seed, task in tasks.items():
            values = learner(task, seed, budgets)
            rows.append([task.share_of_gap(values[budget]) for budget in budgets])
        shares[name] = np.array(rows)
    results = summarised(shares, budgets)
    print(as_text(results, budgets, seeds))
    if args.output:
        content = {"budgets": budgets, "seeds": list(seeds), "results": results}
        text = json.dumps(content, indent=2, allow_nan=False)
        (args.output / "learning.json").write_text(text + "\n")
        print(f"picture: {draw(results, budgets, args.output / 'learning.png')}")
    return 0


def simulated_tasks(seeds: Sequence[int], dataset: str | None = None) -> dict[int, Task]:
    """A task of its own for each seed, all on the same questions: the shipped, or a file's."""
    from benchmarks.learning.tasks import observe, simulated_task
    from query_mutator.data import load_questions

    questions = load_questions(dataset)
    observed = observe(questions)
    return {seed: simulated_task(seed, questions, observed) for seed in seeds}


def measured_tasks(file: Path, seeds: Sequence[int]) -> dict[int, Task]:
    """The questions of an evaluation, parted anew for each seed."""
    from benchmarks.learning.measured import load_measured, parted

    measured = load_measured(file)
    return {seed: parted(measured, seed) for seed in seeds}


def check_can_run(output: Path | None) -> None:
    """Raises `UserError` for what would otherwise fail after minutes of work."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise UserError(f"stable-baselines3 cannot be imported ({error}): make dev") from error
    if output:
        output.mkdir(parents=True, exist_ok=True)
        if not os.access(output, os.W_OK | os.X_OK):
            raise UserError(f"cannot write into {output}; name another folder by --output")


main = as_main(run)

if __name__ == "__main__":
    leave(main())
