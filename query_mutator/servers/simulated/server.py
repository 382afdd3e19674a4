"""The simulated server itself: its life cycle, its counters, its faults."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import threading
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from query_mutator.servers.simulated.answers import Answer, default_answer
from query_mutator.servers.simulated.api import Api
from query_mutator.servers.simulated.faults import Fault, FaultRules
from query_mutator.servers.simulated.generation import Generator
from query_mutator.servers.simulated.http import ClientConnection
from query_mutator.servers.simulated.latency import Latency
from query_mutator.servers.simulated.scheduler import Scheduler
from query_mutator.servers.simulated.stats import Recorder, Stats

HOST = "127.0.0.1"
DIALECTS = ("ollama", "openai")
DEFAULT_MODELS = ("qwen2.5:3b", "llama3.2:3b")

_T = TypeVar("_T")


@dataclass(kw_only=True, eq=False)
class SimulatedServer:
    """An Ollama that a client cannot tell from a real one, served from a daemon thread."""

    slots: int = 8
    """Calls served at a time; further ones wait, first come first served."""
    slots_per_model: bool = False
    """Whether each loaded model has that many of its own, as with Ollama, or the server in all."""
    mean_latency_s: float = 0.0
    """How long a call holds its slot, in the mean."""
    sigma: float = 0.0
    """Spread of lognormal latencies; 0 makes them all equal."""
    recorded_latencies_s: Sequence[float] | None = None
    """Latencies to play in order, over and over, in place of the two above."""
    seconds_per_token: float = 0.0
    """What each token of an answer adds to the latency."""
    embed_latency_s: float = 0.0
    """How long an embedding call holds its slot."""
    seed: int = 0
    """Makes the latencies, together with what is asked."""
    models: Sequence[str] = DEFAULT_MODELS
    """Models on disk; none is in memory at first."""
    system_prompts: Mapping[str, str] = field(default_factory=dict)
    """What the Modelfiles of some of them say as SYSTEM."""
    max_loaded: int = 3
    """Models that fit in memory together."""
    load_time_s: float = 0.0
    """How long it takes to load one."""
    warm_time_s: float = 0.0
    """What a call spends before it queues, loaded or not: Ollama tells it as load_duration too."""
    max_queue: int = 512
    """Calls that may wait for a load; those for a loaded model queue without limit."""
    answer: Answer = default_answer
    """What the models say: `answer(model, system, prompt)`."""
    faults: Sequence[Fault] = ()
    """Rules for what goes wrong; the first that applies to a request is carried out."""
    dialects: Collection[str] = DIALECTS
    """APIs served: "ollama", "openai" or both."""
    props: bool = False
    """Whether GET /props tells `total_slots`, as llama-server does."""
    disconnect_frees_slot: bool = True
    """Whether a call whose client has gone away ends (it may not: ollama#11889)."""
    version: str = "0.33.0"
    """What /api/version tells."""
    log_size: int = 1000
    """How many of the last requests `stats.last_requests` holds."""
    port: int = 0
    """0 takes a free port, which this field holds once the server has started."""

    def __post_init__(self) -> None:
        if self.slots < 1 or self.max_loaded < 1:
            raise ValueError("slots and max_loaded must be at least 1")
        unknown = set(self.dialects) - set(DIALECTS)
        if unknown or not self.dialects:
            raise ValueError(f"dialects must be among {DIALECTS}, not {tuple(self.dialects)}")
        self._recorder = Recorder(self.log_size)
        self._fault_rules = FaultRules(self.faults)
        self._connections: set[ClientConnection] = set()
        self._listener: asyncio.Server | None = None
        self._place: socket.socket | None = None
        """Holds the port while nobody listens."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The server's address, such as http://127.0.0.1:43211."""
        return f"http://{HOST}:{self.port}"

    @property
    def stats(self) -> Stats:
        """The counters, as they stand together at this moment."""
        return self._recorder.snapshot()

    def reset_stats(self) -> None:
        """Start the counters afresh, say after a warm-up."""
        self._recorder.reset()

    def set_faults(self, *faults: Fault) -> None:
        """Put these rules in force in place of those before; without any, all goes well."""
        self._fault_rules.replace(faults)

    def start(self) -> Self:
        """Return the server once it listens."""
        if self._thread is not None:
            raise RuntimeError("the simulated server runs already")
        self._scheduler = Scheduler(
            self._recorder,
            slots=self.slots,
            slots_per_model=self.slots_per_model,
            max_queue=self.max_queue,
            max_loaded=self.max_loaded,
            load_time_s=self.load_time_s,
            warm_time_s=self.warm_time_s,
        )
        recorded_s = self.recorded_latencies_s
        latency = Latency(
            mean_s=self.mean_latency_s,
            sigma=self.sigma,
            recorded_s=itertools.cycle(recorded_s) if recorded_s else None,
            seconds_per_token=self.seconds_per_token,
            seed=self.seed,
        )
        generator = Generator(
            models=list(self.models),
            system_prompts=self.system_prompts,
            answer=self.answer,
            latency=latency,
            scheduler=self._scheduler,
            recorder=self._recorder,
        )
        self._api = Api(
            generator=generator,
            scheduler=self._scheduler,
            recorder=self._recorder,
            faults=self._fault_rules,
            dialects=self.dialects,
            total_slots=self.slots if self.props else None,
            embed_latency_s=self.embed_latency_s,
            version=self.version,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="simulated-server", daemon=True
        )
        self._thread.start()
        try:
            self._on_loop(self._listen())
        except OSError:
            self._end_loop()
            raise
        return self

    def stop(self) -> None:
        """Drop what is in flight and end the thread."""
        if self._thread is not None:
            self._on_loop(self._drop_everything(keep_port=False))
            self._end_loop()

    def crash(self) -> None:
        """Reset all connections, stop listening and forget loaded models, like a killed server.

        Until `restart` or `stop` the port refuses connections, and nobody else can take it.
        """
        self._on_loop(self._drop_everything(keep_port=True))

    def restart(self) -> None:
        """Listen again on the same port, with no model loaded."""
        if self._listener is not None:
            self.crash()
        self._on_loop(self._listen())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _on_loop(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._loop is None:
            work.close()
            raise RuntimeError("the simulated server is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None
        if self._place is not None:
            self._place.close()
            self._place = None

    async def _listen(self) -> None:
        def connect() -> ClientConnection:
            self._recorder.connection_opened()
            return ClientConnection(self._api.handle, self._connections, self.disconnect_frees_slot)

        loop = asyncio.get_running_loop()
        if self._place is None:
            self._place = _bound(self.port)
        self._listener = await loop.create_server(connect, sock=self._place, backlog=1024)
        self.port = self._place.getsockname()[1]
        self._place = None  # the listener's, which closes it

    async def _drop_everything(self, *, keep_port: bool) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            if keep_port:
                self._place = _bound(self.port)
        for connection in list(self._connections):
            connection.reset()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._scheduler.forget_models()


def _bound(port: int) -> socket.socket:
    """A socket that holds the port, 0 for a free one, and refuses connections until it listens."""
    # asyncio sends without delay only where the protocol is named.
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # connections of before may linger; elsewhere it means another thing
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((HOST, port))
    except OSError:
        place.close()
        raise
    return place
