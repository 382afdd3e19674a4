"""Learning from what comes: a run that is still going, or a puzzle server.

What has come is seen again: of each window half is fresh, and half is drawn from a replay buffer,
the rewrites and moves that gained most the most often.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from batching import (
    BatchingConfig,
    GymConfig,
    GymEpisodeStream,
    ReplayBuffer,
    RollingBatchPlanWindow,
    Sample,
    StreamSample,
    WindowConfig,
)
from batching.streaming import follow_hints
from query_mutator.base.errors import UserError
from query_mutator.base.locks import only_writer
from query_mutator.models.encoders import load_encoder
from query_mutator.runs.directory import CONFIG
from query_mutator.tuning.plans import Epoch
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.run_pairs import gain_pairs
from query_mutator.tuning.settings import TuningSettings

WINDOW = 64
"""Samples that are planned together: more waste less, and come later."""
REMEMBERED = 10_000
POLL_S = 2.0


def online_epochs(
    settings: TuningSettings,
    known: Iterable[Sample],
    writer: PromptWriter,
    config: BatchingConfig,
) -> Iterator[Epoch]:
    """A small epoch for each window: first of the samples `known` before, then of what comes."""
    buffer = ReplayBuffer(REMEMBERED, "priority", seed=settings.seed)
    window = RollingBatchPlanWindow(WindowConfig(WINDOW, config))
    for sample in _arriving(settings, known, writer):
        plan = window.add(sample)
        if plan is None and len(buffer):
            (again,) = buffer.sample(1).samples
            plan = window.add(again)
        buffer.add(sample)
        if plan is not None:
            yield Epoch(plan.samples_by_id, plan.plan)
    if (plan := window.flush()) is not None:
        yield Epoch(plan.samples_by_id, plan.plan)


def _arriving(
    settings: TuningSettings, known: Iterable[Sample], writer: PromptWriter
) -> Iterator[StreamSample]:
    yield from map(StreamSample.of, known)
    if settings.from_:
        yield from _followed(settings.from_, writer)
    else:
        yield from puzzles(settings, writer)


def puzzles(settings: TuningSettings, writer: PromptWriter) -> GymEpisodeStream:
    """Puzzles that are played by the server's own hints."""
    config = GymConfig(
        host=settings.gym_host,
        port=settings.gym_port,
        seed=settings.seed,
        episodes=settings.episodes,
        ask_hints=True,
    )
    return GymEpisodeStream(config, follow_hints, writer.tokenizer)


def check_puzzle_server(settings: TuningSettings, writer: PromptWriter) -> None:
    """Refuses a server that does not answer, before anything is made."""
    from batching.streaming.telnet import ConnectionFailedError

    try:
        puzzles(settings, writer).opening()
    except ConnectionFailedError as error:
        raise UserError(
            f"--online: {error}.\nName a puzzle server by --gym-host and --gym-port, or a run by "
            "--from"
        ) from error


def _followed(runs: list[str], writer: PromptWriter) -> Iterator[StreamSample]:
    """The gains of runs as they come, until none is written to any more."""
    encoder = load_encoder()
    seen: set[tuple[str, str]] = set()
    while True:
        # Asked before reading: what is logged between the two is read.
        is_going = any(map(is_written_to, runs))
        for run in runs:
            for pair in gain_pairs(run, encoder):
                if (pair.question, pair.rewrite) in seen:
                    continue
                seen.add((pair.question, pair.rewrite))
                sample = writer.sample(str(len(seen)), pair)
                yield StreamSample.of(sample, source="run", priority=pair.weight)
        if not is_going:
            break
        time.sleep(POLL_S)
    if not seen:
        raise UserError(
            f"--from {' '.join(runs)}: no rewrite there asked the same and gained.\n"
            "Give another run, or leave --from out and learn from the shipped pairs"
        )


def is_written_to(run: str | Path) -> bool:
    """Whether a process has the run's directory for itself."""
    if not (Path(run) / CONFIG).is_file():
        return False
    try:
        with only_writer(Path(run), within=True):
            return False
    except UserError:
        return True
