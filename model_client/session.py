"""A server that is ready to be asked: connected, its models warm, its encoder loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from model_client.client import ModelClient
from model_client.connect import Connection, connect, warm_up
from model_client.encoders import PACKAGED_MODEL, Encoder, load_encoder
from model_client.roles import Roles
from servers.cache import ResponseCache


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
    server: str = "auto",
    *,
    mutator_model: str | None = None,
    target_model: str | None = None,
    embedding_model: str = PACKAGED_MODEL,
    slots: int = 8,
    timeout_s: float = 60.0,
    load_timeout_s: float = 600.0,
    retries: int = 2,
    num_ctx: int = 2048,
    max_tokens_mutation: int = 64,
    max_tokens_answer: int = 96,
    temperature_mutation: float = 0.0,
    temperature_answer: float = 0.0,
    seed: int = 0,
    cache_file: str | Path | None = None,
) -> Models:
    """Connects, checks the models, loads the encoder and has each model answer once.

    Answers are kept in `cache_file`, where one is named.
    """
    cache = ResponseCache(cache_file) if cache_file else None
    connection = connect(
        server,
        mutator_model=mutator_model,
        target_model=target_model,
        timeout_s=timeout_s,
        slots=slots,
        num_ctx=num_ctx,
    )
    client = ModelClient(
        connection.http,
        connection.dialect,
        retries=retries,
        cache=cache,
        digests=connection.digests,
    )
    try:
        encoder = load_encoder(
            embedding_model,
            client=client,
            num_ctx=num_ctx,
            max_workers=slots,
            load_timeout_s=load_timeout_s,
            # A model that runs on the same cores starves if torch takes them all.
            torch_threads=1 if connection.embedded else None,
        )
        warm_up(client, connection, num_ctx=num_ctx, timeout_s=load_timeout_s)
    except BaseException:
        client.close()
        connection.close()
        raise
    roles = Roles(
        mutator_model=connection.mutator_model,
        target_model=connection.target_model,
        max_tokens_mutation=max_tokens_mutation,
        max_tokens_answer=max_tokens_answer,
        temperature_mutation=temperature_mutation,
        temperature_answer=temperature_answer,
        num_ctx=num_ctx,
        seed=seed,
    )
    return Models(client, roles, encoder, connection)
