"""From what the user typed (`auto`, `embedded`, URLs) to servers that answer with their models."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from query_mutator.base.errors import UserError
from query_mutator.base.weights import EMBEDDED, LANGUAGE_MODEL
from query_mutator.models.addresses import normalise_url, ollama_url
from query_mutator.models.backend import Backend
from query_mutator.models.calls import CallFailedError
from query_mutator.models.dialects import Dialect, OpenAIDialect, detect_dialect
from query_mutator.models.http import HttpServer
from query_mutator.models.keys import API_KEY_VARIABLE, KEY_HOST_VARIABLE, keys_for
from query_mutator.models.settings import ModelSettings
from query_mutator.models.tuned_mutator import (
    contender_model,
    is_tuned,
    rewriter_backend,
    wanted_contenders,
    wanted_rewriter,
)
from query_mutator.servers.embedded import (
    MODEL_NAME,
    REWRITER_NAME,
    EmbeddedServer,
    default_slots,
    start_embedded,
)
from query_mutator.servers.rewriters import NONE

logger = logging.getLogger(__name__)

PROBE_TIMEOUT_S = 5.0
PARTS = {"mutation": "--mutator-model", "answer": "--target-model", "judge": "--judge-model"}
"""What models are asked for, and the flag that names the model."""
UNTOLD = "at "
"""How what stands for a digest begins where a server tells none."""


@dataclass
class Connection:
    """Servers that answer, the models they will be asked for, and why they were chosen."""

    backends: list[Backend]
    mutator_model: str
    target_model: str
    judge_model: str
    why: str
    rewriter_model: str = ""
    """The mutator that was tuned to rewrite; "" where there is none."""
    contender_models: dict[str, str] = field(default_factory=dict)
    """The embedded model with each of the adapters to compare, by the adapter's name."""
    embedded: EmbeddedServer | None = None
    embedded_answers: bool = False
    """True where the embedded model is the one that answers."""

    @property
    def servers(self) -> list[str]:
        """What to give as --server to come back to the same ones."""
        return [
            EMBEDDED if self._is_embedded(backend) else backend.http.url
            for backend in self.backends
            if not any(model.startswith(REWRITER_NAME) for model in backend.models)
        ]

    def close(self) -> None:
        for backend in self.backends:
            backend.http.close()
        if self.embedded:
            self.embedded.close()

    def _is_embedded(self, backend: Backend) -> bool:
        return self.embedded is not None and backend.http.url == self.embedded.url


@dataclass
class _Offer:
    """A server that was found, and what it has; the embedded one is started only when chosen."""

    where: str
    purposes: frozenset[str]
    dialect: Dialect
    models: dict[str, str]
    http: HttpServer | None

    def find(self, wanted: str) -> str | None:
        """The server's own name for the model that the user means."""
        return next((m for m in self.models if self.dialect.same_model(wanted, m)), None)

    def digest(self, wanted: str) -> str:
        """What tells its weights from others; where the server tells nothing, its address."""
        return self.models[self.find(wanted) or wanted] or UNTOLD + self.where


def connect(settings: ModelSettings) -> Connection:
    """The servers to use and their models, checked; the embedded one is started if it is chosen."""
    places, timeout_s = _places(settings), settings.timeout_s
    # What `auto` finds at the usual address may be anybody's: it is not sent the key.
    keys = keys_for(place for place in places if place not in {"auto", EMBEDDED})
    named = {
        "mutation": settings.mutator_model,
        "answer": settings.target_model,
        "judge": settings.judge_model,
    }
    why = []
    with contextlib.ExitStack() as undo:
        offers: list[_Offer] = []
        for place, purposes in places.items():
            if place == EMBEDDED:
                offer, reason = _embedded_offer(purposes), "as asked for"
            elif place == "auto":
                offer, reason = _auto_offer(purposes, named, timeout_s)
            else:
                offer, reason = _offer(place, purposes, timeout_s, keys[place]), ""
            if offer.http is not None:
                undo.callback(offer.http.close)
            offers.append(offer)
            why.append(offer.where + (f" ({reason})" if reason else ""))
        chosen = _choose(PARTS, offers, named)
        mutator = chosen["mutation"]
        may_be = any(offer.http is None and "mutation" in offer.purposes for offer in offers)
        rewriter = wanted_rewriter(settings, mutator=mutator, may_be_embedded=may_be)
        contenders = wanted_contenders(settings, mutator=mutator, may_be_embedded=may_be)
        rewriter_model = REWRITER_NAME if rewriter else ""
        if rewriter is None and settings.rewriter != NONE and _is_tuned(offers, mutator):
            rewriter_model = mutator
        tuned = {REWRITER_NAME: rewriter} if rewriter else {}
        tuned |= {contender_model(adapter): adapter for adapter in contenders.values()}
        embedded = None
        for offer in offers:
            if offer.http is None:
                slots = settings.slots or default_slots()
                embedded = start_embedded(
                    slots=slots,
                    num_ctx=settings.num_ctx,
                    rewriter=rewriter.path if rewriter else None,
                    contenders=[adapter.path for adapter in contenders.values()],
                )
                undo.callback(embedded.close)
                offer.http, offer.dialect = _reach(embedded.url, timeout_s)
        backends = [_backend(offer, chosen, settings.group_by_model) for offer in offers]
        urls = embedded.adapter_urls if embedded else []
        for (model, adapter), url in zip(tuned.items(), urls, strict=True):
            http, dialect = _reach(url, timeout_s)
            undo.callback(http.close)
            backends.append(rewriter_backend(http, dialect, adapter, model))
        _warn_of_different_weights(backends)
        undo.pop_all()
    return Connection(
        backends,
        chosen["mutation"],
        chosen["answer"],
        chosen["judge"],
        ", ".join(why),
        rewriter_model,
        {name: contender_model(adapter) for name, adapter in contenders.items()},
        embedded,
        embedded is not None and chosen["answer"] == MODEL_NAME,
    )


def _places(settings: ModelSettings) -> dict[str, frozenset[str]]:
    """Each server the user named, with what it is asked for."""
    named = [settings.server] if isinstance(settings.server, str) else list(settings.server)
    servers = named or ["auto"]
    for_mutator, for_target = settings.mutator_server, settings.target_server
    for_judge = settings.judge_server
    if for_mutator and for_target and servers != ["auto"]:
        raise UserError(
            "--server has nothing to do beside --mutator-server and --target-server: leave it out"
        )
    if "auto" in servers and len(servers) > 1:
        raise UserError("--server auto stands alone; to use several servers, name each")
    answering = {"answer"} if for_judge else {"answer", "judge"}
    left = set() if for_mutator else {"mutation"}
    left |= set() if for_target else answering
    places: dict[str, set[str]] = {}
    for names, purposes in (
        (servers if left else [], left),
        (for_mutator, {"mutation"}),
        (for_target, answering),
        (for_judge, {"judge"}),
    ):
        for name in names:
            place = name if name in {"auto", EMBEDDED} else normalise_url(name)
            if name == "auto" and names is not servers:
                raise UserError("auto goes with --server only; name the server")
            places.setdefault(place, set()).update(purposes)
    return {place: frozenset(purposes) for place, purposes in places.items()}


def _embedded_offer(purposes: frozenset[str]) -> _Offer:
    where = f"the embedded {MODEL_NAME}"
    return _Offer(where, purposes, OpenAIDialect(), {MODEL_NAME: LANGUAGE_MODEL.sha256}, None)


def _auto_offer(
    purposes: frozenset[str], named: dict[str, str | None], timeout_s: float
) -> tuple[_Offer, str]:
    """An Ollama that answers and has the models, else the embedded model; and why."""
    url = ollama_url(os.environ.get("OLLAMA_HOST"))
    try:
        http, _ = _reach(url, timeout_s)
    except UserError:
        why_not = f"no Ollama answers at {url}"
    else:
        http.close()
        offer = _offer(url, purposes, timeout_s)
        assert offer.http is not None
        try:
            _choose(purposes, [offer], named)
            return offer, "found"
        except UserError as error:
            offer.http.close()
            why_not = str(error).splitlines()[0]
            if any(named[purpose] not in {None, MODEL_NAME} for purpose in purposes):
                raise
    for purpose in purposes:
        if named[purpose] not in {None, MODEL_NAME}:
            raise UserError(
                f"the embedded server has no model '{named[purpose]}'; it has: {MODEL_NAME} "
                f"({why_not}).\nStart Ollama and get it with: ollama pull {named[purpose]}"
            )
    return _embedded_offer(purposes), why_not


def _offer(url: str, purposes: frozenset[str], timeout_s: float, key: str | None = None) -> _Offer:
    http, dialect = _reach(url, timeout_s, key)
    try:
        models = dialect.list_models(http)
    except CallFailedError as error:
        http.close()
        raise UserError(f"{url} does not list its models: {error}") from error
    return _Offer(f"the {dialect.name} server at {url}", purposes, dialect, models, http)


def _reach(url: str, timeout_s: float, key: str | None = None) -> tuple[HttpServer, Dialect]:
    http = HttpServer(url, timeout_s=timeout_s, api_key=key)
    try:
        dialect, why_not = detect_dialect(http, timeout_s=min(PROBE_TIMEOUT_S, timeout_s))
    except CallFailedError as error:
        http.close()
        raise UserError(
            f"no model server answers at {url} ({error.failure.reason}).\n"
            "Start it (`ollama serve`), correct --server, or use --server embedded."
        ) from error
    if dialect is None:
        http.close()
        raise UserError(
            f"{url} answers, but neither as Ollama (/api/version) nor as an OpenAI-compatible "
            f"server (/v1/models: {why_not}).\nCheck the address; a key, if it needs one, goes "
            f"into {API_KEY_VARIABLE}{_not_sent(key)}."
        )
    return http, dialect


def _not_sent(key: str | None) -> str:
    """What to say where there is a key that is not for this server."""
    if key is not None or not os.environ.get(API_KEY_VARIABLE):
        return ""
    return f" (set, but not for this server: name it with --server, or in {KEY_HOST_VARIABLE})"


def _choose(
    purposes: Collection[str], offers: Sequence[_Offer], named: dict[str, str | None]
) -> dict[str, str]:
    """The model for each part: as named, or as for another part, or the only one there is."""
    others = {"mutation": named["answer"], "answer": named["mutation"]}
    chosen: dict[str, str] = {}
    for purpose in PARTS:
        if purpose in purposes:
            other = others[purpose] if purpose in others else chosen.get("answer")
            chosen[purpose] = _pick(purpose, offers, named, other)
    return chosen


def _pick(
    purpose: str, offers: Sequence[_Offer], named: dict[str, str | None], other: str | None
) -> str:
    """The model for one part, which may be that of the `other` where none is named."""
    able = [offer for offer in offers if purpose in offer.purposes]
    offered = list(dict.fromkeys(model for offer in able for model in offer.models))
    where = " and ".join(offer.where for offer in able)
    wanted = named[purpose] or other
    if wanted and any(offer.find(wanted) for offer in able):
        return wanted
    if not named[purpose] and len(offered) == 1:
        return offered[0]
    if not wanted:
        raise UserError(
            f"name the models with --target-model and --mutator-model; {where} has: "
            f"{', '.join(offered) or 'none (get one with: ollama pull llama3.2:3b)'}"
        )
    # Without a model of its own, a part asks for that of the answers.
    asked = purpose if named[purpose] else next((p for p in PARTS if named.get(p)), purpose)
    raise UserError(
        f"{where} has no model '{wanted}'; it has: {', '.join(offered) or 'none'}.\n"
        f"Give one of these as {PARTS[asked]}, or {able[0].dialect.missing_model_hint(wanted)}"
    )


def _is_tuned(offers: Sequence[_Offer], mutator: str) -> bool:
    """Whether the mutator was tuned for rewriting on every server that has it."""
    able = [(offer, offer.find(mutator)) for offer in offers if "mutation" in offer.purposes]
    having = [(offer.http, offer.dialect, model) for offer, model in able if model]
    return bool(having) and all(
        http is not None and is_tuned(http, dialect, model) for http, dialect, model in having
    )


def _backend(offer: _Offer, chosen: dict[str, str], group_by_model: bool | None) -> Backend:
    assert offer.http is not None
    models = {
        chosen[purpose]: offer.digest(chosen[purpose])
        for purpose in sorted(offer.purposes)
        if offer.find(chosen[purpose])
    }
    if not models:
        wanted = " nor ".join(dict.fromkeys(chosen[purpose] for purpose in sorted(offer.purposes)))
        raise UserError(
            f"{offer.where} has no model {wanted}: leave it out, or "
            f"{offer.dialect.missing_model_hint(chosen['answer'])}"
        )
    return Backend(
        offer.http,
        offer.dialect,
        models,
        purposes=offer.purposes,
        slots=offer.dialect.count_slots(offer.http),
        group_by_model=group_by_model,
    )


def told_digests(backends: Sequence[Backend]) -> dict[str, list[str]]:
    """The digests of each model's weights that servers tell; one, where they have the same."""
    models = sorted({model for backend in backends for model in backend.models})
    return {
        model: sorted(
            {
                backend.models[model]
                for backend in backends
                if not backend.models.get(model, UNTOLD).startswith(UNTOLD)
            }
        )
        for model in models
    }


def _warn_of_different_weights(backends: Sequence[Backend]) -> None:
    for model, digests in told_digests(backends).items():
        if len(digests) > 1:
            logger.warning(
                "%s is not the same on all servers: answers depend on which one is asked", model
            )
