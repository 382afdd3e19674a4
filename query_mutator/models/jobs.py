"""What waits to be asked of a server, and in which order it goes."""

from __future__ import annotations

import heapq
import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from query_mutator.models.backend import Backend
from query_mutator.models.calls import Outcome, Reply

Priority = tuple[int, ...]
Lane = tuple[str, str, int | None]
"""Purpose, model and calls at once of the jobs that can go to the same servers."""
AHEAD: Priority = (sys.maxsize,)
"""Of a job that nobody waits for yet: it goes after every other."""


@dataclass(eq=False)
class Job:
    """Something to ask of a server; of two that wait, the lesser priority goes first."""

    purpose: str
    model: str
    work: Callable[[Backend, float | None], Reply]
    """One attempt on a server, within seconds where they are given; raises `CallFailedError`."""
    done: Callable[[Outcome], None]
    max_workers: int | None = None
    """Calls under way on a server for this job to join them; None leaves it to the server."""
    priority: Priority = ()
    beside_limit: bool = False
    """Whether it may go out although the limit is reached: its caller makes one at a time."""
    attempts: int = 0
    failed_on: Counter[Backend] = field(default_factory=Counter)
    started: float | None = None
    """When it was first sent, or first sent again after an outage."""
    put_back: int = 0
    """How often an outage that it may have brought about itself was not held against it."""

    @property
    def lane(self) -> Lane:
        return self.purpose, self.model, self.max_workers

    @property
    def is_ahead(self) -> bool:
        return self.priority == AHEAD


class Lanes:
    """Waiting jobs, by what a server must have to take them."""

    def __init__(self) -> None:
        self._heaps: dict[Lane, list[tuple[Priority, int, Job]]] = defaultdict(list)
        self._numbers = itertools.count()
        self._jobs: dict[Lane, set[Job]] = defaultdict(set)

    def push(self, job: Job) -> None:
        self._jobs[job.lane].add(job)
        heapq.heappush(self._heaps[job.lane], (job.priority, next(self._numbers), job))

    def hurry(self, job: Job, priority: Priority) -> None:
        """Moves a job forward, if it still waits; its old entry goes when it comes up."""
        if priority < job.priority:
            job.priority = priority  # one on its way may come back
            if job in self._jobs[job.lane]:
                self.push(job)

    def heads(self) -> list[Job]:
        """The next job of each lane, the most urgent first."""
        first = []
        for heap in self._heaps.values():
            while heap and self._is_stale(*heap[0]):
                heapq.heappop(heap)
            first += heap[:1]
        return [job for _, _, job in sorted(first, key=lambda entry: entry[:2])]

    def _is_stale(self, priority: Priority, _: int, job: Job) -> bool:
        return job not in self._jobs[job.lane] or priority != job.priority

    def pop(self, job: Job) -> None:
        heapq.heappop(self._heaps[job.lane])
        self._jobs[job.lane].remove(job)

    def waiting(self, backend: Backend) -> Counter[str]:
        """How many jobs wait that this server could do, by model; those made ahead are left out."""
        found: Counter[str] = Counter()
        for (purpose, model, _), jobs in self._jobs.items():
            if backend.serves(purpose, model):
                found[model] += sum(not job.is_ahead for job in jobs)
        return found

    def waiting_lanes(self, *, ahead_too: bool = False) -> list[Lane]:
        """The lanes in which somebody waits; `ahead_too` also those of jobs made ahead."""
        return [
            lane
            for lane, jobs in self._jobs.items()
            if any(ahead_too or not job.is_ahead for job in jobs)
        ]

    def drain(self, lane: Lane) -> list[Job]:
        """Takes all jobs out of one lane."""
        self._heaps.pop(lane, None)
        return list(self._jobs.pop(lane, ()))

    def clear(self) -> list[Job]:
        jobs = [job for lane in self._jobs.values() for job in lane]
        self._heaps.clear()
        self._jobs.clear()
        return jobs
