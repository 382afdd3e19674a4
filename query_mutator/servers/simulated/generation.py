"""Generations: from a call to the answer, through the queue and for the time that it takes."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass

from query_mutator.servers.simulated.answers import Answer, tokenise
from query_mutator.servers.simulated.calls import ApiError, GenerationRequest
from query_mutator.servers.simulated.dialects import Dialect, Generation, json_bytes
from query_mutator.servers.simulated.faults import BUSY_TEXT, HOSTILE_TEXT, Fault
from query_mutator.servers.simulated.http import Response
from query_mutator.servers.simulated.latency import Latency
from query_mutator.servers.simulated.scheduler import Lease, Scheduler, ServerBusyError
from query_mutator.servers.simulated.stats import Recorder

PROMPT_SHARE = 0.1
"""The part of a latency that is told as prompt_eval_duration."""


class Flight:
    """A generation call from its arrival until it leaves."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._landed = False
        self.lease: Lease | None = None
        recorder.generation_arrived()

    def land(self) -> None:
        """Give the slot back and count the call as gone; doing so again does nothing."""
        if not self._landed:
            self._landed = True
            if self.lease is not None:
                self.lease.release()
            self._recorder.generation_left()


@dataclass(frozen=True)
class _Job:
    """A generation under way: who asked, since when, for how long, and how it ends."""

    call: GenerationRequest
    dialect: Dialect
    flight: Flight
    generation: Generation
    began: float
    latency_s: float
    broken_by: str | None
    """The error that ends it halfway."""


@dataclass(eq=False, kw_only=True)
class Generator:
    """Serves generation calls, and knows the models on disk."""

    models: list[str]
    system_prompts: Mapping[str, str]
    answer: Answer
    latency: Latency
    scheduler: Scheduler
    recorder: Recorder

    def __post_init__(self) -> None:
        self._answer_takes_seed = "seed" in inspect.signature(self.answer).parameters

    def find_model(self, name: str) -> str:
        """Return the name under which a model is on disk; raises Ollama's 404 where it is not."""
        for known in (name, f"{name}:latest", name.removesuffix(":latest")):
            if known in self.models:
                return known
        raise ApiError(404, f"model '{name}' not found")

    async def acquire(self, call: GenerationRequest) -> Lease:
        """Return a slot of the call's model, or raise Ollama's 404 or 503."""
        name = self.find_model(call.model)
        try:
            return await self.scheduler.acquire(name, call.load_options, call.keep_alive_s)
        except ServerBusyError:
            raise ApiError(503, BUSY_TEXT) from None

    async def serve(
        self, call: GenerationRequest, dialect: Dialect, flight: Flight, fault: Fault | None
    ) -> Response:
        """Return the answer to a call; a fault, where there is one, breaks it off or spoils it."""
        if not call.messages and call.keep_alive_s == 0:
            self.scheduler.unload(self.find_model(call.model))
            flight.land()
            return Response(json_bytes(dialect.loaded(call, "unload")))
        lease = flight.lease = await self.acquire(call)
        if not call.messages:
            flight.land()
            return Response(json_bytes(dialect.loaded(call, "load")))
        began = asyncio.get_running_loop().time()
        generation, latency_s = self._make(call, lease)
        broken_by = None
        if fault is not None and fault.kind == "hostile_text":
            generation.tokens.insert(0, HOSTILE_TEXT)
        elif fault is not None:
            generation.tokens = generation.tokens[: len(generation.tokens) // 2]
            generation.done_reason = None
            broken_by = fault.error_text(call.model) if fault.kind == "stream_error" else None
        job = _Job(call, dialect, flight, generation, began, latency_s, broken_by)
        if call.stream:
            return Response(self._stream(job), content_type=dialect.stream_type)
        await _sleep_until(began + latency_s)
        self._finish(job)
        if broken_by is not None:
            raise ApiError(500, broken_by)
        return Response(json_bytes(dialect.whole(call, generation)))

    async def _stream(self, job: _Job) -> AsyncGenerator[bytes, None]:
        prompt_s = job.generation.prompt_ns / 1e9
        token_s = (job.latency_s - prompt_s) / max(1, len(job.generation.tokens))
        for index, token in enumerate(job.generation.tokens, start=1):
            await _sleep_until(job.began + prompt_s + index * token_s)
            yield job.dialect.piece(job.call, token)
        self._finish(job)
        if job.broken_by is not None:
            yield job.dialect.error_line(job.broken_by)
        else:
            yield job.dialect.last(job.call, job.generation)

    def _finish(self, job: _Job) -> None:
        # A call leaves before its last bytes do: a client that sends its next call on reading them
        # must never be seen with one call too many in flight.
        if job.generation.done_reason is not None:
            self.recorder.generation_answered(job.latency_s)
        job.flight.land()

    def _make(self, call: GenerationRequest, lease: Lease) -> tuple[Generation, float]:
        """Return what the model says to a call, and the seconds that it takes to."""
        # As Ollama does: a model's own system prompt gives way to that of a call.
        system = call.system or self.system_prompts.get(self.find_model(call.model), "")
        if self._answer_takes_seed:
            text = self.answer(call.model, system, call.prompt, seed=call.seed)
        else:
            text = self.answer(call.model, system, call.prompt)
        if call.json_key is not None:
            text = json.dumps({call.json_key: text}, ensure_ascii=False)
        for stop in call.options.get("stop") or ():
            text = text.partition(stop)[0] if stop else text
        tokens, reason = tokenise(text), "stop"
        limit = int(call.options.get("num_predict") or 0)
        if 0 < limit < len(tokens):
            tokens, reason = tokens[:limit], "length"
        latency_s = self.latency.of_call(call.content, len(tokens))
        latency_ns = round(latency_s * 1e9)
        prompt_ns = round(latency_ns * PROMPT_SHARE)
        generation = Generation(
            tokens=tokens,
            done_reason=reason,
            prompt_tokens=call.prompt_tokens,
            wait_ns=lease.wait_ns,
            load_ns=lease.load_ns,
            prompt_ns=prompt_ns,
            eval_ns=latency_ns - prompt_ns,
        )
        return generation, latency_s


async def _sleep_until(moment: float) -> None:
    delay = moment - asyncio.get_running_loop().time()
    if delay > 0:
        await asyncio.sleep(delay)
