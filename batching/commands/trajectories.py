"""`python -m batching trajectories`: what a run has tried, as samples to learn from."""

from __future__ import annotations

import argparse
import math
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from batching.commands.parts import Commands, add_command, add_tokenizer, bar
from batching.commands.sample_output import (
    add_outputs,
    check_output,
    open_buffer,
    save_buffer,
    settle_outputs,
    summary,
)
from query_mutator.base.errors import UserError
from query_mutator.base.terminal import counted, show_warnings

if TYPE_CHECKING:
    from batching.streaming import PipelineStream, ReplayBuffer, StreamSample
    from batching.streaming.trajectories import TransitionLogStream

TRANSITIONS = "transitions.jsonl"


def add_commands(commands: Commands) -> None:
    """`trajectories`."""
    parser = add_command(
        commands, "trajectories", "turn the rewrites of a training run into samples", run,
        example="-r runs/NAME --improved -o rewrites.jsonl",
    )  # fmt: skip
    parser.add_argument(
        "-r", "--run", dest="directory", required=True, type=Path, metavar="DIR",
        help=f"the directory of a training run, with its {TRANSITIONS}",
    )  # fmt: skip
    chosen = parser.add_argument_group("which", "without these: every rewrite that was tried")
    chosen.add_argument(
        "--improved", action="store_true", help="only those after which the score was higher"
    )
    chosen.add_argument(
        "--least-reward", type=_number, metavar="X", help="only those with such a reward or more"
    )
    samples = parser.add_argument_group("samples")
    add_tokenizer(samples, default="bytes")
    add_outputs(samples)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number, not {text}")
    return value


def run(args: argparse.Namespace) -> int:
    """Writes the samples, all of them or none."""
    show_warnings()
    settle_outputs(args)
    check_output(args)
    with open_buffer(args) as buffer:
        _write(args, buffer)
    return 0


def _write(args: argparse.Namespace, buffer: ReplayBuffer | None) -> None:
    from batching.streaming.sample_files import save_samples

    log, stream = _streams(args)

    def samples() -> Iterator[StreamSample]:
        for sample in bar(stream, None, "reading", "samples"):
            if buffer is not None:
                buffer.add(sample)
            yield sample

    if args.output is not None:
        save_samples(args.output, samples())
    else:
        deque(samples(), maxlen=0)
    metrics = stream.metrics
    metrics.dropped.update(log.metrics.dropped)
    for name in ("episodes", "solved_episodes", "failed_episodes"):
        setattr(metrics, name, getattr(log.metrics, name))
    print(summary(metrics))
    if args.output is not None:
        print(f"{args.output}: {counted(metrics.samples, 'sample')}")
    save_buffer(buffer, args.buffer, metrics.samples)


def _streams(args: argparse.Namespace) -> tuple[TransitionLogStream, PipelineStream]:
    """The run's log, and what of it was asked for."""
    from batching.generation import load_tokenizer
    from batching.generation.dataset import run_operators
    from batching.streaming import PipelineStream, SampleFilter, by_reward, by_success
    from batching.streaming.trajectories import TransitionLogStream

    if not (args.directory / TRANSITIONS).is_file():
        raise UserError(f"{args.directory} holds no run (no {TRANSITIONS}); check the path")
    tokenizer = load_tokenizer(args.tokenizer)
    log = TransitionLogStream(args.directory, run_operators(args.directory), tokenizer)
    # Named by what they refuse: that is how it is counted and told.
    filters = []
    if args.improved:
        filters.append(SampleFilter("not improved", by_success()))
    if args.least_reward is not None:
        lower = f"below a reward of {args.least_reward:g}"
        filters.append(SampleFilter(lower, by_reward(least=args.least_reward)))
    return log, PipelineStream(log, *filters)
