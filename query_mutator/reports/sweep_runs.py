"""Runs the trainer again and again, in processes of its own, under one progress bar."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from query_mutator.base.children import module_command, module_environment
from query_mutator.base.closing import Closing
from query_mutator.base.errors import UserError
from query_mutator.base.locks import LOCK
from query_mutator.base.terminal import printable, progress_bar
from query_mutator.reports.grid import SweptRun, command_of
from query_mutator.runs.directory import CONFIG, RunDirectory

STEPS_DONE = re.compile(r"^update \d+/\d+  (\d+)/\d+ steps")
RESUMED_AT = re.compile(r"^resuming .* at step (\d+)$")
CACHE_SUFFIXES = ("", "-wal", "-shm")
"""The files of an SQLite database."""
HOPELESS = 3
"""Failures at the start, with no run that ended well, after which the sweep gives up."""


class SweepState:
    """What a sweep keeps between its sessions: sweep.json in its directory."""

    def __init__(self, folder: Path, flags: Sequence[str], *, share_cache: bool) -> None:
        self.folder = folder
        self.finished: set[str] = set()
        self._kept = {"flags": list(flags), "share_cache": share_cache}

    def begin(self) -> None:
        """Takes up the directory: one that is empty, or one of the same sweep."""
        path = self.folder / "sweep.json"
        if self.folder.exists() and not self.folder.is_dir():
            raise UserError(f"{self.folder} is a file; choose another --output")
        if path.is_file():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                before = {name: content[name] for name in self._kept}
                self.finished = set(content["finished"])
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(f"{path} is damaged; choose another --output") from error
            if before != self._kept:
                flags = shlex.join([*(["--share-cache"] * before["share_cache"]), "--"])
                raise UserError(
                    f"{self.folder} holds another sweep: {flags} {shlex.join(before['flags'])}\n"
                    "Choose another --output, or give the same flags to go on with it"
                )
        elif self.folder.is_dir() and any(self.folder.iterdir()):
            raise UserError(f"{self.folder} is not empty and holds no sweep; choose another")
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
        self.save()

    def finish(self, name: str) -> None:
        """A run has ended well."""
        self.finished.add(name)
        self.save()

    def save(self) -> None:
        content = {**self._kept, "finished": sorted(self.finished)}
        RunDirectory(self.folder).write_json("sweep.json", content)


@dataclass
class SweepOutcome:
    """How the runs of a session ended."""

    interrupted: bool = False
    failed: list[str] = field(default_factory=list)


def run_all(
    runs: Sequence[SweptRun], folder: Path, state: SweepState, *, jobs: int, share_cache: bool
) -> SweepOutcome:
    """Makes every run that is not finished; one that fails is told, and the next begins.

    Ctrl-C is passed on, so that the runs under way save what they have.
    """
    left = [run for run in runs if run.name not in state.finished]
    outcome = SweepOutcome()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _Bar(runs, state.finished) as bar, ThreadPoolExecutor(jobs) as pool:
        children = _Children()
        waiting: dict[Future[str], SweptRun] = {}
        ended = 0
        try:
            while left or waiting:
                while left and len(waiting) < jobs:
                    run = left.pop(0)
                    child = _Child(run, folder, share_cache=share_cache, bar=bar)
                    waiting[pool.submit(child.train, children)] = run
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    run, problem = waiting.pop(future), future.result()
                    if not problem:
                        ended += 1
                        state.finish(run.name)
                        continue
                    outcome.failed.append(run.name)
                    bar.say(f"{run.name} has failed: {problem}")
                    bar.say(f"  by itself: {command_of(run, folder / run.name)}")
                    if not ended and len(outcome.failed) >= HOPELESS and not state.finished:
                        bar.say(f"the first {HOPELESS} runs have failed: the rest is left")
                        left.clear()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not tear the saving
            outcome.interrupted = True
            children.interrupt()
            for future in waiting:
                if future.exception() is None and not future.result():
                    state.finish(waiting[future].name)
            signal.signal(signal.SIGINT, signal.default_int_handler)
        finally:
            signal.signal(signal.SIGTERM, before)
    return outcome


class _Children:
    """The processes under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._interrupted = False

    def start(self, command: Sequence[str]) -> subprocess.Popen[str] | None:
        """A process in a session of its own: the terminal's Ctrl-C comes through `interrupt`,
        once. None where that has come already.
        """
        with self._lock:
            if self._interrupted:
                return None
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                env=module_environment(),
            )  # fmt: skip
            self._processes.add(process)
            return process

    def ended(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._processes.discard(process)

    def interrupt(self) -> None:
        """Has every run save and stop; what is begun later is not.

        By SIGTERM, which the trainer takes for Ctrl-C: whoever starts a sweep in the background
        has it ignore Ctrl-C, and its runs would inherit that.
        """
        with self._lock:
            self._interrupted = True
            for process in self._processes:
                process.terminate()


class _Child:
    """One run, from its command to its end."""

    def __init__(self, run: SweptRun, folder: Path, *, share_cache: bool, bar: _Bar) -> None:
        self.run, self.folder, self.bar = run, folder, bar
        self.share_cache = share_cache
        self.path = folder / run.name
        self.cache = folder / "caches" / f"{run.name}.sqlite"

    def train(self, children: _Children) -> str:
        """Begins the run, or resumes it where that is fair; returns "" or what went wrong."""
        log = self.folder / "logs" / f"{self.run.name}.log"
        log.parent.mkdir(exist_ok=True)
        self.bar.begin(self.run)
        try:
            process = children.start(self._command())
        except (UserError, OSError) as error:
            return str(error)
        if process is None:
            return "interrupted"
        last = ""
        assert process.stdout is not None
        with log.open("a", encoding="utf-8") as file:
            for line in process.stdout:
                file.write(line)
                file.flush()
                if line.startswith("error: "):
                    last = line.removeprefix("error: ").strip()
                if found := STEPS_DONE.match(line) or RESUMED_AT.match(line):
                    self.bar.reached(self.run, int(found[1]))
        code = process.wait()
        children.ended(process)
        if code == 0:
            self.bar.reached(self.run, self.run.env_steps)
            return ""
        return printable(last) or f"exit code {code}; its output is in {log}"

    def _command(self) -> list[str]:
        command = module_command("query_mutator", "train")
        if self.share_cache and (self.path / CONFIG).is_file():
            return [*command, "--resume", "--run-dir", str(self.path)]
        self._clear()
        command += [*self.run.flags, "--run-dir", str(self.path)]
        if not self.share_cache and "--no-cache" not in self.run.flags:
            command += ["--cache", str(self.cache.absolute())]
        return command

    def _clear(self) -> None:
        """Removes what an earlier session has left of the run.

        Resumed, it would find the answers of its lost work in its cache, and the time that these
        took would be in neither session: it would look faster than it is.
        """
        if self.path.exists():
            directory = RunDirectory(self.path)
            directory.take()  # the trainer of a sweep that was killed may still be at work
            try:
                for entry in self.path.iterdir():
                    if entry.name != LOCK:
                        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            finally:
                directory.release()
            self.path.rmdir()
        for suffix in CACHE_SUFFIXES:
            self.cache.with_name(self.cache.name + suffix).unlink(missing_ok=True)


class _Bar(Closing):
    """Environment steps of all runs together."""

    def __init__(self, runs: Sequence[SweptRun], finished: set[str]) -> None:
        self._lock = threading.Lock()
        self._steps = {run.name: run.env_steps if run.name in finished else 0 for run in runs}
        self._begun = len(finished & set(self._steps))
        self._many = len(runs)
        self._total = sum(run.env_steps for run in runs)
        self._bar = progress_bar(self._total, sum(self._steps.values()), unit=" steps")

    def close(self) -> None:
        self._bar.close()

    def begin(self, run: SweptRun) -> None:
        with self._lock:
            self._begun += 1
            line = f"run {self._begun} of {self._many}: {run.name}"
            if self._bar.disable:
                self.say(line)
            self._bar.set_description_str(line)

    def reached(self, run: SweptRun, steps: int) -> None:
        """A run has come so far; the steps of a checkpoint are counted too."""
        with self._lock:
            done = sum(self._steps.values())
            self._steps[run.name] = max(steps, self._steps[run.name])
            reached = sum(self._steps.values())
            if not self._bar.disable:
                self._bar.update(reached - done)
            elif (percent := 100 * reached // self._total) > 100 * done // self._total:
                self.say(f"{percent}%  {reached}/{self._total} steps")

    def say(self, line: str) -> None:
        """A line above the bar."""
        self._bar.write(printable(line), file=sys.stderr)
        sys.stderr.flush()
