"""What one would write in place of this project, with the libraries that are there.

A peer is entered as a context: it connects, and gives a function that makes the calls. The
function returns the latency of each call, where the library lets one see it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from query_mutator.bench.measure import Arena, Result, summarised, timed
from query_mutator.bench.strategies import Workload
from query_mutator.models.calls import Call
from query_mutator.models.dialects import OllamaDialect

Latencies = list[float]
Peer = Callable[[Workload, str], AbstractContextManager[Callable[[], Latencies]]]


class PeerSkippedError(Exception):
    """A peer that cannot be measured here, and why."""


def measure_peer(name: str, peer: Peer, work: Workload, arena: Arena) -> list[Result]:
    """The result of a peer; none, and a line that says why, where it cannot run."""
    try:
        if len(arena.urls) > 1:
            raise PeerSkippedError("it knows one server, and there are several")
        if arena.connection.backends[0].dialect.name != "ollama":
            raise PeerSkippedError("it speaks to Ollama only")
        with peer(work, arena.urls[0]) as make_calls:
            latencies: Latencies = []
            seconds, used = timed(arena, lambda: latencies.extend(make_calls()))
    except PeerSkippedError as reason:
        print(f"{name}: skipped: {reason}", file=sys.stderr)
        return []
    calls = 2 * work.num_envs * work.num_steps
    return [summarised(name, work, calls, latencies, seconds=seconds, used=used)]


@contextlib.contextmanager
def ollama_loop(work: Workload, url: str) -> Iterator[Callable[[], Latencies]]:
    """The official client, one call after the other."""
    client = _library("ollama").Client(host=url, trust_env=False)

    def make_calls() -> Latencies:
        latencies: Latencies = []
        for call in work.calls():
            sent = time.monotonic()
            client.chat(**_request(call))
            latencies.append(time.monotonic() - sent)
        return latencies

    yield make_calls


@contextlib.contextmanager
def ollama_async(work: Workload, url: str) -> Iterator[Callable[[], Latencies]]:
    """The official asynchronous client: a step of all environments is gathered, within a limit."""
    ollama = _library("ollama")

    async def make_calls() -> Latencies:
        client = ollama.AsyncClient(host=url, trust_env=False)
        at_once = asyncio.Semaphore(work.batch_size or work.num_envs)
        latencies: Latencies = []

        async def ask(call: Call) -> None:
            async with at_once:
                sent = time.monotonic()
                await client.chat(**_request(call))
                latencies.append(time.monotonic() - sent)

        async def one_step(env: int, step: int) -> None:
            await ask(work.mutation(env, step))
            await ask(work.answer(env, step))

        for step in range(work.num_steps):
            await asyncio.gather(*(one_step(env, step) for env in range(work.num_envs)))
        return latencies

    yield lambda: asyncio.run(make_calls())


@contextlib.contextmanager
def litellm_batches(work: Workload, url: str) -> Iterator[Callable[[], Latencies]]:
    """All rewrites of a step through `batch_completion`, then all its answers."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the internet
    litellm = _library("litellm")

    def ask_all(calls: list[Call]) -> None:
        call = calls[0]
        answers = litellm.batch_completion(
            model=f"ollama_chat/{call.model}",
            api_base=url,
            messages=[[dict(message) for message in call.messages] for call in calls],
            max_workers=work.batch_size or work.num_envs,
            max_tokens=call.max_tokens,
            temperature=call.temperature,
            seed=call.seed,
            num_ctx=call.num_ctx,
            stop=list(call.stop) or None,
            num_retries=0,
        )
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer

    def make_calls() -> Latencies:
        for step in range(work.num_steps):
            ask_all([work.mutation(env, step) for env in range(work.num_envs)])
            ask_all([work.answer(env, step) for env in range(work.num_envs)])
        return []

    yield make_calls


@contextlib.contextmanager
def sb3_on_async_vector_env(work: Workload, url: str) -> Iterator[Callable[[], Latencies]]:
    """Stable-Baselines3's PPO on gymnasium's AsyncVectorEnv, a process for each environment."""
    _library("ollama")
    sb3 = _library("stable_baselines3")
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    from query_mutator.bench.sb3_peer import AskingEnv, VectorEnvForSB3

    envs = AsyncVectorEnv(
        [partial(AskingEnv, work, url, env) for env in range(work.num_envs)],
        context="spawn",  # this process has threads, which a fork would not copy
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    try:
        rows = work.num_envs * work.num_steps
        # One pass over the data: what is measured is the calls, not the learning.
        learner = sb3.PPO(
            "MlpPolicy",
            VectorEnvForSB3(envs),
            n_steps=work.num_steps,
            batch_size=rows,
            n_epochs=1,
            device="cpu",
        )

        def make_calls() -> Latencies:
            learner.learn(rows)
            return []

        yield make_calls
    finally:
        envs.close()


LOOP = "ollama client, loop"
PEERS: dict[str, Peer] = {
    LOOP: ollama_loop,
    "ollama AsyncClient": ollama_async,
    "litellm batches": litellm_batches,
    "AsyncVectorEnv + SB3": sb3_on_async_vector_env,
}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise PeerSkippedError(f"{name} is not installed (make dev installs it)") from error


def _request(call: Call) -> dict[str, Any]:
    """The call as the official client takes it: the same that our own client sends."""
    return OllamaDialect().chat_request(call)[1]
