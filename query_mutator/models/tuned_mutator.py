"""The mutator that was tuned for rewriting: the embedded model with an adapter, or a server's own.

The first is a model beside the others. The second is known by the system prompt of its Modelfile.
"""

from __future__ import annotations

from query_mutator.base.errors import UserError
from query_mutator.base.weights import LANGUAGE_MODEL
from query_mutator.models.backend import Backend
from query_mutator.models.calls import CallFailedError
from query_mutator.models.dialects import Dialect
from query_mutator.models.http import HttpServer
from query_mutator.models.settings import ModelSettings
from query_mutator.servers.embedded import MODEL_NAME, REWRITER_NAME
from query_mutator.servers.rewriters import NONE, Rewriter, find_contenders, find_rewriter

DIGITS = 16

TUNED_INSTRUCTION = "Ask this clearly."
"""What the system says to a model that was tuned for rewriting: in training, in the Modelfile that
an export writes, and when it is asked."""


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


def wanted_contenders(
    settings: ModelSettings, *, mutator: str, may_be_embedded: bool
) -> dict[str, Rewriter]:
    """The adapters to compare by name; they need the embedded model as the mutator."""
    if settings.contenders and not (mutator == MODEL_NAME and may_be_embedded):
        raise UserError(
            f"--contender is an adapter of the embedded model, and {mutator} rewrites, on a server "
            "that takes none: leave it out, or give --server embedded"
        )
    return find_contenders(settings.contenders)


def contender_model(rewriter: Rewriter) -> str:
    """What the embedded model with an adapter to compare is called among the models.

    By its weights: what it said is remembered wherever the adapter lies.
    """
    return f"{REWRITER_NAME}:{rewriter.sha256[:DIGITS]}"


def rewriter_backend(
    http: HttpServer, dialect: Dialect, rewriter: Rewriter, model: str = REWRITER_NAME
) -> Backend:
    """Where an adapter is asked: its weights, so its answers, are told apart by both digests."""
    digest = f"{LANGUAGE_MODEL.sha256}+{rewriter.sha256}"
    slots = dialect.count_slots(http)
    return Backend(http, dialect, {model: digest}, purposes={"mutation"}, slots=slots)


def is_tuned(http: HttpServer, dialect: Dialect, model: str) -> bool:
    """Whether the server's own model was tuned as `train-mutator` does, as its system prompt tells.

    `UserError` where the server fails; one without the page that tells has no such model.
    """
    try:
        return dialect.system_prompt(http, model).strip() == TUNED_INSTRUCTION
    except CallFailedError as error:
        if not error.retryable:
            return False
        # Asked in another way than before, a run that is resumed would be another run.
        raise UserError(f"{http.url} does not tell about {model}: {error}") from error
