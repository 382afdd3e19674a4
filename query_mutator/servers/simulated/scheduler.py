"""Slots, queues and the models in memory of a simulated server, after Ollama's scheduler.

A loaded model takes calls without limit: they wait for a slot, first come first served. Only a call
that needs a load can be turned away, when `max_queue` of them are waiting. Loads happen one at a
time; where there is no room, the least recently used idle model goes, and where every model is busy
the load waits for one to drain. As with Ollama, a model that is to drain still takes calls, so that
a steady stream of them can keep another model out.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from query_mutator.servers.simulated.stats import Recorder

DEFAULT_KEEP_ALIVE_S = 300.0
LoadOptions = tuple[object, ...]


class ServerBusyError(Exception):
    """As many calls as the queue holds are waiting for a load."""


class Slots:
    """A number of places that are given in the order in which they were asked for."""

    def __init__(self, count: int, recorder: Recorder) -> None:
        self._free = asyncio.Semaphore(count)
        self._recorder = recorder

    async def take(self) -> None:
        """Return once a slot is held."""
        self._recorder.queue_seen()
        waits = int(self._free.locked())
        self._recorder.queued(+waits)
        try:
            await self._free.acquire()
        finally:
            self._recorder.queued(-waits)
        self._recorder.served(+1)

    def give_back(self) -> None:
        """Hand the slot to the next in the queue."""
        self._recorder.served(-1)
        self._free.release()


@dataclass(eq=False)
class LoadedModel:
    """A model in memory; `users` counts the calls that hold it, served or queued."""

    name: str
    options: LoadOptions
    slots: Slots
    users: int = 0
    keep_alive_s: float = DEFAULT_KEEP_ALIVE_S
    idle_since: float = field(default_factory=time.monotonic)

    def expired(self) -> bool:
        if self.users or self.keep_alive_s < 0:
            return False
        return time.monotonic() - self.idle_since >= self.keep_alive_s

    def expires_at(self) -> datetime:
        seconds = self.keep_alive_s if self.keep_alive_s >= 0 else 100 * 365 * 86_400.0
        return datetime.now(UTC) + timedelta(seconds=seconds)


class Lease:
    """A call's hold on a slot of a loaded model, and how long it took to get."""

    def __init__(
        self, scheduler: Scheduler, model: LoadedModel, load_ns: int, wait_ns: int
    ) -> None:
        self._scheduler = scheduler
        self._model: LoadedModel | None = model
        self.load_ns = load_ns
        self.wait_ns = wait_ns

    def release(self) -> None:
        """Give slot and model back; doing so again does nothing."""
        if self._model is not None:
            model, self._model = self._model, None
            model.slots.give_back()
            self._scheduler.let_go(model)


@dataclass(eq=False)
class Scheduler:
    """Gives calls a slot of their model, loading it first where it must."""

    recorder: Recorder
    slots: int
    slots_per_model: bool
    max_queue: int
    max_loaded: int
    load_time_s: float
    warm_time_s: float

    def __post_init__(self) -> None:
        self._shared_slots = None if self.slots_per_model else Slots(self.slots, self.recorder)
        self._loaded: OrderedDict[str, LoadedModel] = OrderedDict()
        self._waiting_for_load = 0
        self._one_load_at_a_time = asyncio.Lock()
        self._drained = asyncio.Event()

    def loaded(self) -> list[LoadedModel]:
        """Return the models in memory, the least recently used first."""
        self._unload_expired()
        return list(self._loaded.values())

    def forget_models(self) -> None:
        """Leave memory empty, as after a restart of the process."""
        self._loaded.clear()

    def unload(self, name: str) -> None:
        """Take a model out of memory once it is idle."""
        if name in self._loaded:
            self._loaded[name].keep_alive_s = 0.0
            self._unload_expired()

    async def acquire(self, name: str, options: LoadOptions, keep_alive_s: float | None) -> Lease:
        """Return a slot; raises ServerBusyError when too many calls wait for a load already."""
        arrived = time.perf_counter_ns()
        self._unload_expired()
        model = self._loaded.get(name)
        if model is None or model.options != options:
            if self._waiting_for_load >= self.max_queue:
                raise ServerBusyError
            self._waiting_for_load += 1
            try:
                async with self._one_load_at_a_time:
                    model = await self._load(name, options)
                    model.users += 1
            finally:
                self._waiting_for_load -= 1
        else:
            model.users += 1
        self._loaded.move_to_end(name)
        if self.warm_time_s:
            try:
                await asyncio.sleep(self.warm_time_s)
            except asyncio.CancelledError:
                self.let_go(model)
                raise
        if keep_alive_s is not None:
            model.keep_alive_s = keep_alive_s
        ready = time.perf_counter_ns()
        try:
            await model.slots.take()
        except asyncio.CancelledError:
            self.let_go(model)
            raise
        return Lease(self, model, ready - arrived, time.perf_counter_ns() - ready)

    def let_go(self, model: LoadedModel) -> None:
        """Count a user of the model less, which may make it idle."""
        model.users -= 1
        if model.users == 0:
            model.idle_since = time.monotonic()
            self._drained.set()

    async def _load(self, name: str, options: LoadOptions) -> LoadedModel:
        model = self._loaded.get(name)
        if model is not None and model.options == options:
            return model
        await self._make_room(name)
        if self.load_time_s:
            await asyncio.sleep(self.load_time_s)
        slots = self._shared_slots or Slots(self.slots, self.recorder)
        model = self._loaded[name] = LoadedModel(name, options, slots)
        self.recorder.loaded(name)
        return model

    async def _make_room(self, name: str) -> None:
        while name in self._loaded or len(self._loaded) >= self.max_loaded:
            # A model that is loaded with other options has to go itself, whoever else is idle.
            candidates = [self._loaded[name]] if name in self._loaded else self._loaded.values()
            idle = next((model for model in candidates if not model.users), None)
            if idle is not None:
                del self._loaded[idle.name]
            else:
                self._drained.clear()
                await self._drained.wait()

    def _unload_expired(self) -> None:
        for model in [model for model in self._loaded.values() if model.expired()]:
            del self._loaded[model.name]
