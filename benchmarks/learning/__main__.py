"""Compares learners at equal numbers of steps, on a simulated task or on measured questions.

python -m benchmarks.learning
python -m benchmarks.learning --table table.jsonl --output DIR
python -m benchmarks.learning --task none
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from query_mutator.base.errors import UserError
from query_mutator.base.files import write_atomically
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main, counted, leave

if TYPE_CHECKING:
    from benchmarks.learning.tasks import Task

PICTURE = "learning.png"
TITLES = {
    None: "Learning on a table of measured answers, judged on unseen questions",
    "none": "Learning where no operator helps",
    "harm": "Learning where all operators do harm",
}
UPDATES = (4, 8, 16, 32)
SEEDS, SEEDS_OF_TABLE = 10, 20
BUDGETS = (160, 320, 640, 1280, 2560)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = OneLineParser(
        prog="python -m benchmarks.learning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--seeds", type=at_least(1), metavar="N",
        help=f"tasks, each its own seed (default: {SEEDS}; of a table {SEEDS_OF_TABLE})",
        )  # fmt: skip
    add("--first-seed", type=at_least(0), default=0, help="seed of the first task (default: 0)")
    add("--updates", type=at_least(1), nargs="+", metavar="N",
        help="measure at as many steps as so many updates of PPO take (default: 4 8 16 32)",
        )  # fmt: skip
    add("--records", type=Path, metavar="FILE",
        help="learn from the questions of an evaluation (its records.jsonl), a third of them held "
        "out, another third for each seed, in place of the simulated task",
        )  # fmt: skip
    add("--table", type=Path, metavar="FILE",
        help="learn from a table of operators (python -m benchmarks.operator_table)")  # fmt: skip
    add("--task", choices=("none", "harm"),
        help="a task in which no operator helps, or in which all do harm, on the questions of the "
        "table or of the dataset",
        )  # fmt: skip
    add("--budgets", type=at_least(1), nargs="+", metavar="N",
        help="rewards to learn from, of --table and --task (default: "
        f"{' '.join(map(str, BUDGETS))})",
        )  # fmt: skip
    add("--dataset", metavar="FILE", help="questions for the simulated task (default: the shipped)")
    add("--output", type=Path, help="folder for learning.json and learning.png")
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    args = build_parser().parse_args(argv)
    check_flags(args)
    check_can_run(args.output)
    import torch

    torch.set_num_threads(1)
    began, worked = time.monotonic(), time.process_time()
    told = compare_gains(args) if args.table or args.task else compare_shares(args)
    print(told)
    worked = time.process_time() - worked
    took = time.monotonic() - began
    print(f"took {took:.0f} s, {worked:.0f} s of the processor", file=sys.stderr)
    return 0


def compare_shares(args: argparse.Namespace) -> str:
    """How much learners close of the gap between random choice and the optimum."""
    from tqdm import tqdm

    from benchmarks.learning.learners import LEARNERS, steps_per_update
    from benchmarks.learning.report import as_text, draw, summarised

    budgets = [updates * steps_per_update() for updates in sorted(set(args.updates or UPDATES))]
    seeds = range(args.first_seed, args.first_seed + (args.seeds or SEEDS))
    if args.records:
        tasks = measured_tasks(args.records, seeds)
    else:
        tasks = simulated_tasks(seeds, args.dataset)
    shares: dict[str, Any] = {}
    for name, learner in tqdm(LEARNERS.items(), disable=None):
        rows = []
        for seed, task in tasks.items():
            values = learner(task, seed, budgets)
            rows.append([task.share_of_gap(values[budget].value) for budget in budgets])
        shares[name] = np.array(rows)
    results = summarised(shares, budgets)
    told = as_text(results, budgets, seeds)
    if args.output:
        write(args.output, {"budgets": budgets, "seeds": list(seeds), "results": results})
        told += f"\npicture: {draw(results, budgets, args.output / PICTURE)}"
    return told


def compare_gains(args: argparse.Namespace) -> str:
    """What learners gain on unseen questions, how often they harm, and what they leave alone."""
    from benchmarks.learning.gain_learners import LEARNERS
    from benchmarks.learning.gain_report import as_text, draw, summarised
    from benchmarks.learning.learners import check_budgets
    from benchmarks.learning.table import load_table_task, task_of_no_use
    from query_mutator.base.progress import Doing

    budgets = sorted(set(args.budgets or BUDGETS))
    check_budgets(budgets)
    seeds = range(args.first_seed, args.first_seed + (args.seeds or SEEDS_OF_TABLE))
    if args.task:
        task = task_of_no_use(args.task, args.table, args.dataset)
    else:
        task = load_table_task(args.table)
    judgements: dict[str, list[Any]] = {name: [] for name in LEARNERS}
    doing = Doing(len(seeds) * len(LEARNERS), 0, doing="learning", noun="learner")
    with doing as progress:
        for seed in seeds:
            for name, learner in LEARNERS.items():
                values = learner(task, seed, budgets)
                judgements[name].append([values[budget] for budget in budgets])
                progress.update(f"seed {seed}, {name}")
    results = summarised(judgements)
    told = as_text(results, budgets, seeds, len(task.heldout))
    if args.output:
        about = {
            "task": args.task or "table",
            "train": len(task.train),
            "heldout": len(task.heldout),
        }
        content = {**about, "budgets": budgets, "seeds": list(seeds), "results": results}
        write(args.output, content)
        title = TITLES[args.task] + f" ({counted(len(seeds), 'seed')})"
        told += f"\n\npicture: {draw(results, budgets, title, args.output / PICTURE)}"
    return told


def write(output: Path, content: dict[str, Any]) -> None:
    """Keeps the figures beside their picture."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    write_atomically(output / "learning.json", lambda file: file.write(text.encode()))


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


def check_flags(args: argparse.Namespace) -> None:
    """Refuses flags that do not go together."""
    of_gains = args.table or args.task
    for first, second, both in (
        ("--records", "--table", args.records and args.table),
        ("--records", "--task", args.records and args.task),
        ("--records", "--dataset", args.records and args.dataset),
        ("--table", "--dataset", args.table and args.dataset),
        ("--updates", "--table or --task: they take --budgets", args.updates and of_gains),
    ):
        if both:
            raise UserError(f"{first} does not go with {second}; leave one out")
    if args.budgets and not of_gains:
        raise UserError("--budgets belongs to --table or --task; the simulated task has --updates")


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
