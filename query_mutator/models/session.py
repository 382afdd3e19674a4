"""Servers that are ready to be asked: connected, their models checked, the encoder loaded."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from query_mutator.base.closing import Closing
from query_mutator.base.errors import UserError
from query_mutator.models.cache import ResponseCache
from query_mutator.models.client import ModelClient
from query_mutator.models.connect import Connection, connect
from query_mutator.models.encoders import Encoder, load_encoder
from query_mutator.models.flows import Encode, FlowRunner, Handlers, encode_handler
from query_mutator.models.roles import Roles
from query_mutator.models.settings import ModelSettings

logger = logging.getLogger(__name__)


@dataclass
class Models(Closing):
    """Everything that is said to models goes through here; a context manager that closes it."""

    client: ModelClient
    roles: Roles
    encoder: Encoder
    connection: Connection

    def runner(self, handlers: Handlers, *, max_workers: int | None = 8) -> FlowRunner[Any]:
        """What advances flows that ask these models, other requests answered by `handlers`."""
        encode = encode_handler(self.encoder.encode_each)
        return FlowRunner(self.client, {Encode: encode, **handlers}, max_workers=max_workers)

    def close(self) -> None:
        self.client.close()
        self.connection.close()


def open_models(settings: ModelSettings | None = None) -> Models:
    """Connects, checks the models and loads the encoder.

    Answers are kept in the cache file, if one is named; where that cannot be, a warning says so.
    """
    settings = settings or ModelSettings()
    cache = _open_cache(settings.cache_file) if settings.cache_file else None
    connection = connect(settings)
    client = ModelClient(connection.backends, settings, cache=cache)
    try:
        encoder = load_encoder(settings.embedding_model, client=client, num_ctx=settings.num_ctx)
    except BaseException:
        client.close()
        connection.close()
        raise
    roles = Roles(
        mutator_model=connection.mutator_model,
        target_model=connection.target_model,
        judge_model=connection.judge_model,
        rewriter_model=connection.rewriter_model,
        max_tokens_mutation=settings.max_tokens_mutation,
        max_tokens_answer=settings.max_tokens_answer,
        temperature_mutation=settings.temperature_mutation,
        temperature_answer=settings.temperature_answer,
        num_ctx=settings.num_ctx,
        seed=settings.seed,
        faithful=settings.faithful,
    )
    return Models(client, roles, encoder, connection)


def _open_cache(file: str | Path) -> ResponseCache | None:
    try:
        return ResponseCache(file)
    except UserError as error:
        logger.warning("%s; going on without it", error)
        return None
