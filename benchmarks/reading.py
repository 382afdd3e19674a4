"""`python -m benchmarks.reading`: event files read by us and by TensorBoard's EventAccumulator."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from query_mutator.base.terminal import OneLineParser, exit_code, leave

TAG = "Training/loss"
PLANTED = -123.456


def write_scalars(directory: Path, count: int, *, planted_at: int) -> None:
    """One tag with noise above 0 and one minimum below it, written by torch."""
    from torch.utils.tensorboard import SummaryWriter

    values = np.random.default_rng(1).random(count)
    values[planted_at] = PLANTED
    with SummaryWriter(str(directory), max_queue=count) as writer:
        for step, value in enumerate(values):
            writer.add_scalar(TAG, value, step)


def ours(directory: Path) -> tuple[int, float]:
    """The step and the value of the minimum."""
    from query_mutator.reports.events import read_curves

    curve = read_curves(directory)[TAG]
    lowest = int(curve.values.argmin())
    return int(curve.steps[lowest]), float(curve.values[lowest])


def tensorboards(directory: Path) -> tuple[int, float]:
    """The same by TensorBoard's reader, told to keep every point."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory), size_guidance={"scalars": 0})
    events.Reload()
    lowest = min(events.Scalars(TAG), key=lambda event: event.value)
    return lowest.step, lowest.value


def timed(read: Callable[[Path], tuple[int, float]], directory: Path) -> tuple[float, int, float]:
    started = time.perf_counter()
    found = read(directory)
    return time.perf_counter() - started, *found


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--scalars", type=int, default=200_000, help="points in one tag")
    parser.add_argument("--repeats", type=int, default=5, help="times that each reads them")
    args = parser.parse_args(argv)
    planted_at = args.scalars * 2 // 3
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        write_scalars(directory, args.scalars, planted_at=planted_at)
        pairs = [
            (timed(ours, directory), timed(tensorboards, directory)) for _ in range(args.repeats)
        ]
    print(f"{args.scalars:,} scalars in one tag, planted minimum {PLANTED} at step {planted_at}")
    for name, index in (("query_mutator.reports.events", 0), ("EventAccumulator", 1)):
        seconds, steps, values = zip(*[pair[index] for pair in pairs], strict=True)
        found = f"minimum {values[0]:.3f} at step {steps[0]}"
        print(f"{name:<20}{median(seconds):8.2f} s (median of {len(pairs)}), {found}")
    ratios = [left[0] / right[0] for left, right in pairs]
    print(f"time of ours / EventAccumulator's: {median(ratios):.3f} (worst {max(ratios):.3f})")
    return 0


if __name__ == "__main__":
    leave(exit_code(run))
