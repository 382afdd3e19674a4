"""A long training run against a simulated server: does anything grow, does anything slow down?"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.base.flags import whole_number
from query_mutator.base.terminal import OneLineParser, exit_code, leave
from query_mutator.servers.simulated import SimulatedChild, start_simulated

ROOT = Path(__file__).resolve().parent.parent
SETTLED_STEPS = 10_000
"""What is filled once (caches, pools, the allocator's arenas) is full by then."""
TOLERANCE = 0.05
SAMPLES = 50
"""Lines of the table in all."""
ROLLOUT = 16 * 4

# Calls that sample are never remembered: each one is made. A policy that hardly moves chooses alike
# from the first step to the last, so that the two windows hold the same work. The server embeds
# too: most of the time would go into matrix products otherwise (`-- --embedding-model minilm`).
FLAGS = [
    "--mutator-model", "qwen2.5:3b", "--target-model", "llama3.2:3b", "--no-cache",
    "--embedding-model", "llama3.2:3b",
    "--temperature-mutation", "1", "--temperature-answer", "1", "--lr", "1e-9",
    "--num-processes", "16", "--num-steps", "4", "--batch-size", "8", "--max-rewrites", "2",
    "--save-interval", "10", "--no-eval", "--no-report", "--eval-interval", "0",
]  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """How a process fared at one moment."""

    steps: int
    time_s: float
    calls: int
    """Calls that the server has seen."""
    cpu_s: float
    resident_mb: float
    descriptors: int
    threads: int


@dataclass(frozen=True)
class Window:
    """The calls between two samples."""

    first: Sample
    last: Sample

    @property
    def calls_per_s(self) -> float:
        return (self.last.calls - self.first.calls) / (self.last.time_s - self.first.time_s)

    @property
    def cpu_ms_per_call(self) -> float:
        calls = self.last.calls - self.first.calls
        return 1000 * (self.last.cpu_s - self.first.cpu_s) / max(1, calls)


def run(argv: Sequence[str] | None = None) -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument(
        "--steps", type=whole_number, default=50_000, help="environment steps (default: 50000)"
    )
    parser.add_argument(
        "flags", nargs="*", help="after --: flags of train_query_mutator.py that replace its own"
    )
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the run ends with it
    if args.steps < SETTLED_STEPS:
        raise UserError(
            f"--steps must be at least {SETTLED_STEPS}: what is filled once fills first"
        )
    samples: list[Sample] = []
    print("steps   minutes   calls   calls/s   CPU ms a call   MB resident   descriptors   threads")
    with start_simulated("--slots", "64") as server:
        for sample in sampled_run(server, args.steps, args.flags):
            before = samples[-1] if samples else None
            samples.append(sample)
            print(as_line(sample, before, samples[0].time_s), flush=True)
    problems = judged(samples)
    for line in problems:
        print(line)
    return 1 if problems else 0


def sampled_run(
    server: SimulatedChild, steps: int, more_flags: Sequence[str] = ()
) -> Iterator[Sample]:
    """Samples of a training process as it goes on; raises `UserError` where it fails."""
    every = max(1, steps // SAMPLES // ROLLOUT)
    with tempfile.TemporaryDirectory() as directory:
        command = [
            sys.executable, "train_query_mutator.py", "--server", server.url,
            "--run-dir", f"{directory}/run", "--num-env-steps", str(steps),
            "--log-interval", str(every), *FLAGS, *more_flags,
        ]  # fmt: skip
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        said = ""
        try:
            for line in process.stderr:
                if done := re.match(r"update \d+/\d+ +(\d+)/", line):
                    if int(done[1]) < steps:  # after the last, files are open to save the run
                        yield sample_of(process.pid, int(done[1]), server)
                else:
                    said = line
        finally:
            process.terminate()
            code = process.wait()
            process.stderr.close()
        if code:
            raise UserError(f"the run ended with exit code {code}: {said.strip()}")


def sample_of(pid: int, steps: int, server: SimulatedChild) -> Sample:
    """What the kernel tells of a process, and the server of its calls."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    # The name of the command may hold blanks; what follows its bracket is numbers.
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Sample(
        steps=steps,
        time_s=time.monotonic(),
        calls=server.stats()["generation_calls"],
        cpu_s=(int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK"),
        resident_mb=int(fields["VmRSS"].split()[0]) / 1024,
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(fields["Threads"]),
    )


def as_line(sample: Sample, before: Sample | None, began_s: float) -> str:
    """A row of the table; the rates are those since the row before."""
    window = Window(before, sample) if before else None
    rate = f"{window.calls_per_s:.0f}" if window else ""
    cpu = f"{window.cpu_ms_per_call:.2f}" if window else ""
    return (
        f"{sample.steps:>5} {(sample.time_s - began_s) / 60:>9.1f} {sample.calls:>7} {rate:>9} "
        f"{cpu:>15} {sample.resident_mb:>13.1f} {sample.descriptors:>13} {sample.threads:>9}"
    )


def judged(samples: Sequence[Sample]) -> list[str]:
    """What has grown or slowed down since the first 10,000 steps; prints the comparison."""
    settled = next(sample for sample in samples if sample.steps >= SETTLED_STEPS)
    last = samples[-1]
    # Two windows of equal work: as many steps at the end as at the start.
    width = min(SETTLED_STEPS, last.steps // 2)
    start = Window(samples[0], next(s for s in samples if s.steps >= samples[0].steps + width))
    end = Window(next(s for s in samples if s.steps >= last.steps - width), last)
    problems = []
    for name, before, after, tolerance in (
        ("MB resident", settled.resident_mb, last.resident_mb, TOLERANCE),
        ("file descriptors", settled.descriptors, last.descriptors, 0.0),
        ("threads", settled.threads, last.threads, 0.0),
        ("calls/s", -start.calls_per_s, -end.calls_per_s, TOLERANCE),
    ):
        change = (after - before) / abs(before)
        shown = f"{name}: {abs(before):.1f} then {abs(after):.1f} at the end"
        print(shown)
        if change > tolerance:
            problems.append(f"not flat: {shown} ({abs(change):.1%}, {tolerance:.0%} allowed)")
    print(f"CPU ms a call: {start.cpu_ms_per_call:.2f} then {end.cpu_ms_per_call:.2f} at the end")
    return problems


if __name__ == "__main__":
    leave(exit_code(run))
