"""From what the user typed (`auto`, `embedded`, a URL) to a server that answers with its models."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from errors import UserError
from model_client.calls import Call, CallFailedError
from model_client.client import ModelClient
from model_client.dialects import Dialect, detect_dialect
from model_client.http import HttpServer
from servers.embedded import GGUF_SHA256, MODEL_NAME, EmbeddedServer, start_embedded

OLLAMA_PORT = 11434
PROBE_TIMEOUT_S = 5.0
API_KEY_VARIABLE = "QUERY_MUTATOR_API_KEY"


@dataclass
class Connection:
    """A server that answers, the models it will be asked for, and why it was chosen."""

    http: HttpServer
    dialect: Dialect
    mutator_model: str
    target_model: str
    digests: dict[str, str]
    """What tells the weights of each model from others of the same name."""
    why: str
    embedded: EmbeddedServer | None = None

    def close(self) -> None:
        self.http.close()
        if self.embedded:
            self.embedded.close()


def connect(
    server: str = "auto",
    *,
    mutator_model: str | None = None,
    target_model: str | None = None,
    timeout_s: float = 60.0,
    slots: int = 8,
    num_ctx: int = 2048,
) -> Connection:
    """The server to use and its models, checked; the embedded one is started if it is chosen."""
    if server == "auto":
        return _connect_auto(mutator_model, target_model, timeout_s, slots, num_ctx)
    if server == "embedded":
        return _connect_embedded(
            mutator_model, target_model, timeout_s, slots, num_ctx, "as asked for"
        )
    url = normalise_url(server)
    http, dialect = _reach(url, timeout_s)
    try:
        mutator, target, digests = _pick_models(http, dialect, mutator_model, target_model)
    except BaseException:
        http.close()
        raise
    why = f"the {dialect.name} server at {url}"
    return Connection(http, dialect, mutator, target, digests, why)


def warm_up(client: ModelClient, connection: Connection, *, num_ctx: int, timeout_s: float) -> None:
    """Has each model answer once: a load belongs to the request that asks for it, and is slow."""
    for model in dict.fromkeys([connection.mutator_model, connection.target_model]):
        call = Call(
            "warm-up", model, ({"role": "user", "content": "Hello"},), max_tokens=1, num_ctx=num_ctx
        )
        failure = client.ask(call, timeout_s=timeout_s).failure
        if failure is not None:
            advice = f"Check it with a single request to {connection.http.url}."
            if failure.kind == "timeout":
                advice = "It may still be loading: raise --load-timeout."
            raise UserError(
                f"the model {model} did not answer its first call: {failure.reason}\n{advice}"
            )


def ollama_url(host: str | None) -> str:
    """The URL that OLLAMA_HOST means, by Ollama's own rules.

    >>> ollama_url(None), ollama_url("box"), ollama_url("http://box")
    ('http://127.0.0.1:11434', 'http://box:11434', 'http://box:80')
    >>> ollama_url("0.0.0.0"), ollama_url(":1234"), ollama_url("https://box/ollama")
    ('http://127.0.0.1:11434', 'http://127.0.0.1:1234', 'https://box:443/ollama')
    """
    text = (host or "").strip().strip("\"'")
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "http", text
    default_port = {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT) if found else OLLAMA_PORT
    authority, _, path = rest.partition("/")
    if authority.startswith("["):
        name, _, port = authority[1:].partition("]")
        port = port.lstrip(":")
    elif authority.count(":") > 1:  # a bare IPv6 address
        name, port = authority, ""
    else:
        name, _, port = authority.partition(":")
    # Ollama falls back to the default port where the given one is not a port.
    number = int(port) if port.isdigit() and int(port) <= 65535 else default_port
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    name = f"[{name}]" if ":" in name else name
    return f"{scheme}://{name}:{number}" + (f"/{path.rstrip('/')}" if path.rstrip("/") else "")


def normalise_url(text: str) -> str:
    """The base URL of a server as users type it; `host:port` and a trailing `/v1` are fine.

    >>> normalise_url("localhost:8000"), normalise_url("http://box:8000/v1/")
    ('http://localhost:8000', 'http://box:8000')
    """
    url = text.strip() if "://" in text else f"http://{text.strip()}"
    url = url.rstrip("/").removesuffix("/v1").rstrip("/")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise UserError(
            f"--server {text!r} is not a server: use auto, embedded, "
            "or a URL such as http://localhost:11434"
        )
    return url


def _reach(url: str, timeout_s: float) -> tuple[HttpServer, Dialect]:
    http = HttpServer(url, timeout_s=timeout_s, api_key=os.environ.get(API_KEY_VARIABLE))
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
            f"into {API_KEY_VARIABLE}."
        )
    return http, dialect


def _pick_models(
    http: HttpServer, dialect: Dialect, mutator_model: str | None, target_model: str | None
) -> tuple[str, str, dict[str, str]]:
    """The two models, both on the server, and what tells their weights apart from others.

    One name serves for both, and so does an only model. Where a server tells no digest, its
    address has to do.
    """
    try:
        offered = dialect.list_models(http)
    except CallFailedError as error:
        raise UserError(f"{http.url} does not list its models: {error}") from error
    target = target_model or mutator_model
    mutator = mutator_model or target_model
    if not target or not mutator:
        if len(offered) != 1:
            raise UserError(
                f"name the models with --target-model and --mutator-model; {http.url} has: "
                f"{', '.join(offered) or 'none (get one with: ollama pull llama3.2:3b)'}"
            )
        target = mutator = next(iter(offered))
    digests = {}
    for wanted in (target, mutator):
        found = [model for model in offered if dialect.same_model(wanted, model)]
        if not found:
            raise UserError(
                f"{http.url} has no model '{wanted}'; it has: {', '.join(offered) or 'none'}.\n"
                f"Name one of these, or {dialect.missing_model_hint(wanted)}"
            )
        digests[wanted] = offered[found[0]] or f"at {http.url}"
    return mutator, target, digests


def _connect_auto(
    mutator_model: str | None,
    target_model: str | None,
    timeout_s: float,
    slots: int,
    num_ctx: int,
) -> Connection:
    """An Ollama that answers and has the models, else the embedded model."""
    url = ollama_url(os.environ.get("OLLAMA_HOST"))
    named = [model for model in (mutator_model, target_model) if model]
    try:
        http, dialect = _reach(url, timeout_s)
    except UserError:
        why_not = f"no Ollama answers at {url}"
    else:
        try:
            mutator, target, digests = _pick_models(http, dialect, mutator_model, target_model)
            why = f"found {dialect.name} at {url}"
            return Connection(http, dialect, mutator, target, digests, why)
        except UserError as error:
            http.close()
            if named and named != [MODEL_NAME] * len(named):
                raise
            why_not = str(error).splitlines()[0]
    return _connect_embedded(mutator_model, target_model, timeout_s, slots, num_ctx, why_not)


def _connect_embedded(
    mutator_model: str | None,
    target_model: str | None,
    timeout_s: float,
    slots: int,
    num_ctx: int,
    why: str,
) -> Connection:
    for model in (mutator_model, target_model):
        if model and model != MODEL_NAME:
            raise UserError(
                f"the embedded server has no model '{model}'; it has: {MODEL_NAME} ({why}).\n"
                f"For other models start Ollama and get it with: ollama pull {model}"
            )
    embedded = start_embedded(slots=slots, num_ctx=num_ctx)
    try:
        http, dialect = _reach(embedded.url, timeout_s)
    except BaseException:
        embedded.close()
        raise
    why = f"the embedded {MODEL_NAME} ({why})"
    digests = {MODEL_NAME: GGUF_SHA256}
    return Connection(http, dialect, MODEL_NAME, MODEL_NAME, digests, why, embedded)
