"""The embedded mutator with an adapter that was tuned for rewriting: a model beside the others."""

from __future__ import annotations

from query_mutator.base.errors import UserError
from query_mutator.base.weights import LANGUAGE_MODEL
from query_mutator.models.backend import Backend
from query_mutator.models.dialects import Dialect
from query_mutator.models.http import HttpServer
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.embedded import MODEL_NAME, REWRITER_NAME
from query_mutator.servers.rewriters import NONE, Rewriter, find_rewriter


def wanted_rewriter(
    settings: ModelSettings, *, mutator: str, may_be_embedded: bool
) -> Rewriter | None:
    """The adapter to use, if the embedded model is the mutator."""
    if mutator == MODEL_NAME and may_be_embedded:
        return find_rewriter(settings.rewriter)
    if settings.rewriter not in (None, NONE):
        raise UserError(
            f"--rewriter is an adapter of the embedded model, and {mutator} rewrites: leave it "
            "out, or give --mutator-server embedded"
        )
    return None


def rewriter_backend(http: HttpServer, dialect: Dialect, rewriter: Rewriter) -> Backend:
    """Where the rewriter is asked: its weights, so its answers, are told apart by both digests."""
    digest = f"{LANGUAGE_MODEL.sha256}+{rewriter.sha256}"
    slots = dialect.count_slots(http)
    return Backend(http, dialect, {REWRITER_NAME: digest}, purposes={"mutation"}, slots=slots)
