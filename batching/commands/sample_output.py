"""Where samples go that a command makes: a file of samples, a replay buffer, or both."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batching.commands.parts import add_overwrite
from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import counted

if TYPE_CHECKING:
    from batching.streaming import ReplayBuffer, StreamMetrics

DEFAULT_SIZE, MOST_SAMPLES = 10_000, 2**24
EVICTION = ("fifo", "priority", "random")


def add_outputs(parser: Any) -> None:
    """The flags that say where samples go."""
    add = parser.add_argument
    add(
        "-o", "--output", type=Path, metavar="FILE",
        help="samples as JSON lines (.jsonl), which `lengths build` takes as a data set; a "
        "FILE.json is a --buffer",
    )  # fmt: skip
    add_overwrite(parser)
    add(
        "--buffer", type=Path, metavar="FILE",
        help="a replay buffer that the samples are added to; it is made if it is not there",
    )  # fmt: skip
    add(
        "--buffer-size", type=at_least(1, MOST_SAMPLES), metavar="N",
        help=f"how many samples a buffer holds when it is made (default {DEFAULT_SIZE})",
    )  # fmt: skip
    add("--eviction", choices=EVICTION, help="which sample makes room in it (default fifo)")


def settle_outputs(args: argparse.Namespace) -> None:
    """Takes an output that is named as a buffer for one; to replace it makes it anew."""
    output: Path | None = args.output
    args.new_buffer = False
    if output is None or output.suffix.lower() != ".json":
        return
    if args.buffer is not None:
        raise UserError(f"-o {output} is a buffer, and --buffer names another: leave one out")
    args.output, args.buffer, args.new_buffer = None, output, args.overwrite


def check_output(args: argparse.Namespace) -> None:
    """Refuses a place for samples where something is, or can never be, before any work is done."""
    output: Path | None = args.output
    if output is None:
        return
    if output.is_dir():
        raise UserError(f"{output} is a directory; name a file, as in -o samples.jsonl")
    if output.exists() and not args.overwrite:
        raise UserError(
            f"{output} is there already; choose another -o, or replace it with --overwrite"
        )
    if output.suffix.lower() != ".jsonl":
        raise UserError(
            f"-o must end in .jsonl (samples) or .json (a buffer of them), not {output.name!r}"
        )
    if not output.parent.is_dir():
        raise UserError(f"there is no directory {output.parent}")


@contextlib.contextmanager
def open_buffer(args: argparse.Namespace) -> Iterator[ReplayBuffer | None]:
    """The buffer that samples are added to, if one is named.

    Nobody else writes to its file meanwhile: of two writers, one would lose its samples.
    """
    from query_mutator.base.locks import only_writer

    path: Path | None = args.buffer
    if path is None:
        if args.buffer_size or args.eviction:
            raise UserError("--buffer-size and --eviction are of a --buffer, and none is named")
        yield None
        return
    if not path.parent.is_dir():
        raise UserError(f"there is no directory {path.parent}")
    with only_writer(path):
        yield _buffer(path, args)


def _buffer(path: Path, args: argparse.Namespace) -> ReplayBuffer:
    from batching.streaming import ReplayBuffer

    if not path.exists() or args.new_buffer:
        return ReplayBuffer(args.buffer_size or DEFAULT_SIZE, args.eviction or "fifo")
    buffer = ReplayBuffer.load(path)
    for flag, wanted, found in (
        ("--buffer-size", args.buffer_size, buffer.max_size),
        ("--eviction", args.eviction, str(buffer.eviction)),
    ):
        if wanted is not None and wanted != found:
            raise UserError(f"{path} was made with {flag} {found}, not {wanted}; name another")
    return buffer


def save_buffer(buffer: ReplayBuffer | None, path: Path | None, added: int) -> None:
    """Saves a buffer that is open and that something was added to, and says so."""
    if buffer is not None and path is not None and added:
        buffer.write(path)
        print(f"{path}: {counted(added, 'sample')} added, {len(buffer):,} in it")


def summary(metrics: StreamMetrics) -> str:
    """What a stream gave, on a line."""
    parts = [counted(metrics.episodes, "episode"), f"{metrics.solved_episodes:,} solved"]
    if metrics.failed_episodes:
        parts.append(f"{metrics.failed_episodes:,} failed")
    parts += [counted(metrics.samples, "sample"), counted(metrics.tokens, "token")]
    if metrics.mean_reward is not None:
        parts.append(f"mean reward {metrics.mean_reward:+.3f}")
    if metrics.num_dropped:
        reasons = [f"{many:,} {reason}" for reason, many in sorted(metrics.dropped.items()) if many]
        parts.append(f"left out: {', '.join(reasons)}")
    return ", ".join(parts)
