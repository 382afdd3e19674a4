"""What the collector costs by itself: against a server that answers at once.

Three clients ask the same server: one that does nothing but send bytes, to see that the server is
not what is measured; a loop of pooled `requests`; and the collector with policy and environments.
Beside them, how fast the response cache is.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import requests
import torch

from ppo import ActorCritic, RolloutStorage, collect_rollout
from query_mutator.base.flags import AUTO
from query_mutator.bench.measure import Arena, Result, summarised
from query_mutator.bench.strategies import OURS, Workload
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.models.cache import ResponseCache
from query_mutator.models.calls import Reply
from query_mutator.models.connect import connect
from query_mutator.models.encoders import load_encoder
from query_mutator.models.session import Models
from query_mutator.models.settings import ModelSettings
from query_mutator.runs.settings import Settings
from query_mutator.runs.task import load_task
from query_mutator.servers.simulated import DEFAULT_MODELS, start_simulated
from query_mutator.training.trainer import environments

MUTATOR, TARGET = DEFAULT_MODELS
AT_ONCE = 8
KEPT, LOOK_UPS = 5_000, 20_000
Requests = Sequence[tuple[str, dict[str, object]]]


def overhead(work: Workload, *, seed: int) -> list[Result]:
    """The calls per second of the three, and the look-ups of the cache.

    The collector runs twice: by the second time all embeddings are in memory, and that is timed.
    """
    with start_simulated(f"--slots={AT_ONCE}", f"--questions={DEFAULT_FILE}") as child:
        connection = connect(ModelSettings(child.url, mutator_model=MUTATOR, target_model=TARGET))
        arena = Arena([child.url], connection, [child], AT_ONCE)
        arena.load_models()
        dialect = connection.backends[0].dialect
        asked = [dialect.chat_request(call) for call in work.calls()]
        bytes_s = asyncio.run(_bare_bytes(child.url, asked))
        bare_s = _bare_requests(child.url, asked)
        torch.set_num_threads(1)
        encoder = load_encoder()
        for _ in range(2):
            client = arena.client()
            collect_s = collect(Models(client, work.roles, encoder, connection), work, seed=seed)
        counts = client.counts()
        connection.close()
    return [
        summarised("bytes, 8 connections", work, len(asked), seconds=bytes_s),
        summarised("requests, 8 threads", work, len(asked), seconds=bare_s),
        summarised(f"{OURS}, with policy", work, counts.model_calls, seconds=collect_s),
        summarised("cache look-ups", work, LOOK_UPS, seconds=_look_ups()),
    ]


def _look_ups() -> float:
    """The seconds that `LOOK_UPS` look-ups in a response cache on disk take."""
    with tempfile.TemporaryDirectory() as folder:
        cache = ResponseCache(Path(folder) / "responses.sqlite")
        keys = [hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(KEPT)]
        for number, key in enumerate(keys):
            cache.put(key, TARGET, Reply(f"The answer to question number {number} is a sentence."))
        started = time.monotonic()
        found = sum(cache.get(keys[n * 7 % KEPT]) is not None for n in range(LOOK_UPS))
        seconds = time.monotonic() - started
        cache.close()
    if found != LOOK_UPS:
        raise RuntimeError(f"{LOOK_UPS - found} replies were not found")
    return seconds


def _bare_requests(url: str, asked: Requests) -> float:
    """The seconds of a loop of pooled `requests` on threads."""
    local = threading.local()

    def ask(path_and_body: tuple[str, dict[str, object]]) -> None:
        if not hasattr(local, "session"):
            local.session = requests.Session()
        path, body = path_and_body
        answer = local.session.post(url + path, json=body, timeout=60)
        if "message" not in answer.json():
            raise RuntimeError(answer.text)

    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, asked))
    return time.monotonic() - started


async def _bare_bytes(url: str, asked: Requests) -> float:
    """The seconds that the server needs when the client does next to nothing."""
    address = urlsplit(url)
    messages = [_as_bytes(path, body) for path, body in asked]

    async def ask_some(mine: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        for message in mine:
            writer.write(message)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            _, _, after = head.lower().partition(b"content-length:")
            await reader.readexactly(int(after.split(b"\r\n")[0]))
        writer.close()

    started = time.monotonic()
    await asyncio.gather(*(ask_some(messages[first::AT_ONCE]) for first in range(AT_ONCE)))
    return time.monotonic() - started


def _as_bytes(path: str, body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def collect(models: Models, work: Workload, *, seed: int) -> float:
    """The seconds that a reset and a rollout take, with policy and environments."""
    at_once = work.batch_size or AUTO
    settings = Settings(seed=seed, num_processes=work.num_envs, batch_size=at_once)
    task = load_task(settings)
    envs = environments(settings, task, models, max_rewrites=2)
    models.encoder.encode_each([text for q in task.train for text in (q.question, q.reference)])
    torch.manual_seed(seed)
    policy = ActorCritic(envs.observation_size, envs.num_actions, settings.hidden_size)
    storage = RolloutStorage(work.num_steps, work.num_envs, envs.observation_size, envs.num_actions)
    generators = [np.random.default_rng([seed, index]) for index in range(work.num_envs)]
    started = time.monotonic()
    envs.batch_reset()
    collect_rollout(envs, policy, storage, generators, gamma=0.99, gae_lambda=0.95)
    return time.monotonic() - started
