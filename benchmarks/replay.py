"""How fast a full replay buffer draws, changes priorities and takes samples in."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from batching.streaming import Eviction, ReplayBuffer, StreamSample
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import OneLineParser, as_main, leave

BARS_MS = {"sample": 0.3, "update": 0.5}
WARM_UP = 50


def times_ms(work: Callable[[], object], rounds: int) -> np.ndarray:
    """How long each of so many calls took."""
    for _ in range(WARM_UP):
        work()
    moments = [time.perf_counter()]
    for _ in range(rounds):
        work()
        moments.append(time.perf_counter())
    return np.diff(moments) * 1e3


def measured(buffer: ReplayBuffer, batch: int, rounds: int) -> dict[str, np.ndarray]:
    """How long each draw, each change of priorities and each sample that came in took."""
    drawn = cycle([buffer.sample(batch).keys for _ in range(64)])
    wanted = np.random.default_rng(1).lognormal(size=batch).tolist()
    newcomer = next(iter(buffer))
    return {
        "sample": times_ms(lambda: buffer.sample(batch), rounds),
        "update": times_ms(lambda: buffer.update_priorities(next(drawn), wanted), rounds),
        "add one": times_ms(lambda: buffer.add(newcomer), rounds),
    }


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(
        prog="python -m benchmarks.replay",
        description=__doc__,
        epilog="Example: python -m benchmarks.replay --entries 100000",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--entries", type=at_least(1), default=100_000, help="samples in the buffer")
    add("--batch", type=at_least(1), default=32, help="samples drawn and updated at a time")
    add("--rounds", type=at_least(1), default=2000, help="how often each is measured")
    add("--tokens", type=at_least(1), default=32, help="tokens of a sample")
    add("--save", action="store_true", help="measure saving and loading too")
    args = parser.parse_args(argv)
    generator = np.random.default_rng(0)
    mask = (1,) * args.tokens
    samples = [
        # Tokens of their own, as real ones have: shared ones would be in the processor's cache.
        StreamSample(tuple(range(first, first + args.tokens)), mask, priority=priority)
        for first, priority in enumerate(generator.lognormal(size=args.entries).tolist())
    ]
    print(f"{args.entries:,} entries, {args.batch} at a time, {args.rounds:,} times each")
    print(f"{'eviction':<10}{'what':<10}{'median ms':>10}{'95 % ms':>10}{'bar ms':>8}")
    for eviction in Eviction:
        buffer = ReplayBuffer(args.entries, eviction)
        buffer.extend(samples)
        for what, taken in measured(buffer, args.batch, args.rounds).items():
            bar = f"{BARS_MS[what]:g}" if what in BARS_MS else ""
            middle, late = np.percentile(taken, [50, 95])
            print(f"{eviction:<10}{what:<10}{middle:>10.3f}{late:>10.3f}{bar:>8}")
    if args.save:
        _save_and_load(buffer)
    return 0


def _save_and_load(buffer: ReplayBuffer) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "buffer.json"
        began = time.perf_counter()
        buffer.save(path)
        saved = time.perf_counter()
        ReplayBuffer.load(path)
        loaded = time.perf_counter()
        size_mb = path.stat().st_size / 1e6
    print(f"{size_mb:.0f} MB: saved in {saved - began:.2f} s, loaded in {loaded - saved:.2f} s")


main = as_main(run)

if __name__ == "__main__":
    leave(main())
