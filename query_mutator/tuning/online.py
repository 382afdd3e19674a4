"""Learning from what comes: a run that is still going, or a puzzle server.

What has come is seen again: of each window half is fresh, and half is drawn from a replay buffer,
the rewrites and moves that gained most the most often.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import fmean

from filelock import FileLock, Timeout

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
from query_mutator.base.locks import LOCK
from query_mutator.base.untrusted import DEEPEST, MOST_BYTES, open_file, parse_json
from query_mutator.environment.transition import Transition
from query_mutator.models.encoders import Encoder, load_encoder
from query_mutator.runs.directory import CONFIG, TRANSITIONS
from query_mutator.tuning.pairs import Pair
from query_mutator.tuning.plans import Epoch
from query_mutator.tuning.prompts import PromptWriter
from query_mutator.tuning.run_pairs import LEAST_GAIN, WEIGHTS, faithful_of, is_rewrite
from query_mutator.tuning.settings import TuningSettings

WINDOW = 64
"""Samples that are planned together: more waste less, and come later."""
REMEMBERED = 10_000
POLL_S = 2.0


class OnlineEpochs(Iterator[Epoch]):
    """A small epoch for each window: first of the samples `known` before, then of what comes."""

    def __init__(
        self,
        settings: TuningSettings,
        known: Iterable[Sample],
        writer: PromptWriter,
        config: BatchingConfig,
    ) -> None:
        self.is_stopped: Callable[[], bool] = lambda: False
        """Asked while nothing comes as well; once it is so, what has come is given, and no more."""
        self._settings, self._known, self._writer = settings, known, writer
        self._epochs = self._planned(config)

    def __next__(self) -> Epoch:
        return next(self._epochs)

    def _planned(self, config: BatchingConfig) -> Iterator[Epoch]:
        buffer = ReplayBuffer(REMEMBERED, "priority", seed=self._settings.seed)
        window = RollingBatchPlanWindow(WindowConfig(WINDOW, config))
        for sample in self._arriving():
            plan = window.add(sample)
            if plan is None and len(buffer):
                (again,) = buffer.sample(1).samples
                plan = window.add(again)
            buffer.add(sample)
            if plan is not None:
                yield Epoch(plan.samples_by_id, plan.plan)
            if self.is_stopped():
                break
        if (plan := window.flush()) is not None:
            yield Epoch(plan.samples_by_id, plan.plan)
        if not len(buffer):
            raise UserError("stopped before anything came to learn from: there is no adapter")

    def _arriving(self) -> Iterator[StreamSample]:
        yield from map(StreamSample.of, self._known)
        if self._settings.from_:
            yield from self._followed(self._settings.from_)
        else:
            yield from puzzles(self._settings, self._writer)

    def _followed(self, runs: list[str]) -> Iterator[StreamSample]:
        """The gains of runs as they come, until none is written to any more."""
        encoder = load_encoder()
        followed = [FollowedRun(run, encoder) for run in runs]
        seen: set[tuple[str, str]] = set()
        while True:
            # Asked before reading: what is logged between the two is read.
            is_going = any(map(is_written_to, runs))
            for run in followed:
                for pair in run.more():
                    if (pair.question, pair.rewrite) in seen:
                        continue
                    seen.add((pair.question, pair.rewrite))
                    sample = self._writer.sample(str(len(seen)), pair)
                    yield StreamSample.of(sample, source="run", priority=pair.weight)
            if not is_going or self.is_stopped():
                break
            time.sleep(POLL_S)
        if not seen and not self.is_stopped():
            raise UserError(
                f"--from {' '.join(runs)}: no rewrite there asked the same and gained.\n"
                "Give another run, or leave --from out and learn from the shipped pairs"
            )


def online_epochs(
    settings: TuningSettings,
    known: Iterable[Sample],
    writer: PromptWriter,
    config: BatchingConfig,
) -> OnlineEpochs:
    """What comes, as epochs."""
    return OnlineEpochs(settings, known, writer, config)


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


class FollowedRun:
    """The gains of a run that may still go on; each line is read, and each pair judged, once."""

    def __init__(self, run: str, encoder: Encoder) -> None:
        self._path, self._encoder = Path(run), encoder
        if not (self._path / TRANSITIONS).is_file() and not (self._path / CONFIG).is_file():
            raise UserError(f"--from {run}: that is no run (it holds no {TRANSITIONS})")
        self._gains: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._faithful: dict[tuple[str, str], bool] = {}
        self._offset, self._last_line = 0, b""

    def more(self) -> list[Pair]:
        """The faithful rewrites that gained, of those that have been tried since the last call."""
        tried = self._read()
        means = {pair: fmean(self._gains[pair]) for pair in self._gains}
        gained = [pair for pair in tried if means[pair] >= LEAST_GAIN]
        unknown = [pair for pair in gained if pair not in self._faithful]
        faithful = set(faithful_of(unknown, self._encoder))
        self._faithful |= {pair: pair in faithful for pair in unknown}
        found = [mean for pair, mean in means.items() if self._faithful.get(pair)]
        usual = max(LEAST_GAIN, fmean(found)) if found else 1.0
        least, most = WEIGHTS
        return [
            Pair(*pair, weight=min(max(means[pair] / usual, least), most))
            for pair in gained
            if self._faithful[pair]
        ]

    def _read(self) -> list[tuple[str, str]]:
        """Takes in the lines that have come; returns the pairs in them, each once."""
        tried: dict[tuple[str, str], None] = {}
        path = self._path / TRANSITIONS
        if not path.is_file():  # the run has only begun
            return []
        with open_file(path, "the log of a run,") as log:
            log.seek(self._offset - len(self._last_line))
            # A run that is taken up from a checkpoint writes its last lines anew.
            if log.read(len(self._last_line)) != self._last_line:
                log.seek(0)
                self._offset, self._last_line = 0, b""
                self._gains.clear()
            while (line := log.readline(MOST_BYTES)).endswith(b"\n"):
                try:
                    step = Transition.from_json(parse_json(line, deepest=DEEPEST))
                except ValueError as error:
                    raise UserError(f"{path} is damaged at byte {self._offset:,}") from error
                self._offset, self._last_line = self._offset + len(line), line
                if is_rewrite(step) and step.tried_score is not None:
                    pair = step.original_query, step.rewritten_question
                    self._gains[pair].append(step.tried_score - step.previous_score)
                    tried[pair] = None
        return list(tried)


def is_written_to(run: str | Path) -> bool:
    """Whether a process has the run's directory for itself."""
    lock = (Path(run) / LOCK).absolute()
    if not lock.is_file():  # who writes has it there, and takes it away
        return False
    # Not `only_writer`: its file is another's, and would be removed. Held for an instant alone.
    probe = FileLock(lock, mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        probe.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:  # another user's, and not to be asked
        return False
    probe.release()
    return False
