"""Servers that are ready to be asked: connected, their models checked, the encoder loaded."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from query_mutator.base.errors import UserError
from query_mutator.models.cache import ResponseCache
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import Connection, connect
from query_mutator.models.encoders import PACKAGED_MODEL, Encoder, load_encoder
from query_mutator.models.roles import Roles
from query_mutator.servers.embedded import default_slots

logger = logging.getLogger(__name__)


@dataclass
class Models:
    """Everything that is said to models goes through here; a context manager that closes it."""

    client: ModelClient
    roles: Roles
    encoder: Encoder
    connection: Connection

    def close(self) -> None:
        self.client.close()
        self.connection.close()

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_models(
    server: str | Sequence[str] = "auto",
    *,
    mutator_server: Sequence[str] = (),
    target_server: Sequence[str] = (),
    judge_server: Sequence[str] = (),
    mutator_model: str | None = None,
    target_model: str | None = None,
    judge_model: str | None = None,
    embedding_model: str = PACKAGED_MODEL,
    slots: int | None = None,
    timeout_s: float = 60.0,
    load_timeout_s: float = 600.0,
    retries: int = 2,
    max_outage_s: float = 0.0,
    num_ctx: int = 2048,
    max_tokens_mutation: int = 64,
    max_tokens_answer: int = 96,
    temperature_mutation: float = 0.0,
    temperature_answer: float = 0.0,
    seed: int = 0,
    cache_file: str | Path | None = None,
    group_by_model: bool | None = None,
) -> Models:
    """Connects, checks the models and loads the encoder.

    A model's first call may have to load it and has `load_timeout_s`. `slots` are those of the
    embedded server (default: by the machine). While no server answers, calls wait for up to
    `max_outage_s` (0: they fail). Answers are kept in `cache_file`, if one is named; where that
    cannot be, a warning says so.
    """
    cache = _open_cache(cache_file) if cache_file else None
    connection = connect(
        server,
        mutator_server=mutator_server,
        target_server=target_server,
        judge_server=judge_server,
        mutator_model=mutator_model,
        target_model=target_model,
        judge_model=judge_model,
        timeout_s=timeout_s,
        slots=slots or default_slots(),
        num_ctx=num_ctx,
        group_by_model=group_by_model,
    )
    client = ModelClient(
        connection.backends,
        retries=retries,
        load_timeout_s=load_timeout_s,
        num_ctx=num_ctx,
        max_outage_s=max_outage_s,
        cache=cache,
    )
    try:
        encoder = load_encoder(
            embedding_model,
            client=client,
            num_ctx=num_ctx,
        )
    except BaseException:
        client.close()
        connection.close()
        raise
    roles = Roles(
        mutator_model=connection.mutator_model,
        target_model=connection.target_model,
        judge_model=connection.judge_model,
        max_tokens_mutation=max_tokens_mutation,
        max_tokens_answer=max_tokens_answer,
        temperature_mutation=temperature_mutation,
        temperature_answer=temperature_answer,
        num_ctx=num_ctx,
        seed=seed,
    )
    return Models(client, roles, encoder, connection)


def _open_cache(file: str | Path) -> ResponseCache | None:
    try:
        return ResponseCache(file)
    except UserError as error:
        logger.warning("%s; going on without it", error)
        return None
