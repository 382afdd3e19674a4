"""The endpoints of a simulated server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from query_mutator.servers.simulated.answers import embed, tokenise
from query_mutator.servers.simulated.calls import (
    DEFAULT_NUM_CTX,
    ApiError,
    GenerationRequest,
    expect,
    parse_keep_alive,
)
from query_mutator.servers.simulated.dialects import OllamaDialect, OpenAIDialect, json_bytes
from query_mutator.servers.simulated.faults import (
    BODIES,
    ELSEWHERE,
    ERRORS,
    HTML_PAGE,
    IN_THE_ANSWER,
    ON_THE_WIRE,
    Fault,
    FaultRules,
    send_spoilt,
)
from query_mutator.servers.simulated.generation import Flight, Generator
from query_mutator.servers.simulated.http import ClientConnection, Request, Response
from query_mutator.servers.simulated.models import (
    EMBEDDING_LENGTH,
    describe,
    pull_progress,
    show,
    tagged,
)
from query_mutator.servers.simulated.scheduler import Scheduler
from query_mutator.servers.simulated.stats import LoggedRequest, Recorder

STATS_PATH = "/simulated/stats"
"""What no Ollama has: the server's own counters, for benchmarks that run it in another process."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Route:
    """An endpoint: its method, and what answers the JSON that was sent to it."""

    method: str
    handler: Callable[[dict[str, Any]], Awaitable[Response]]


@dataclass(frozen=True)
class GenerationRoute:
    """An endpoint that generates text."""

    dialect: OllamaDialect | OpenAIDialect
    method: str = "POST"


@dataclass(slots=True)
class Exchange:
    """A request on its way to an answer."""

    request: Request
    route: Route | GenerationRoute | None
    body: Any
    is_json: bool
    model: str
    flight: Flight | None = None
    fault: Fault | None = None


@dataclass(eq=False, kw_only=True)
class Api:
    """Answers requests, and counts them."""

    generator: Generator
    scheduler: Scheduler
    recorder: Recorder
    faults: FaultRules
    dialects: Collection[str]
    total_slots: int | None
    embed_latency_s: float
    version: str

    def __post_init__(self) -> None:
        self._native = "ollama" in self.dialects
        self._routes: dict[str, Route | GenerationRoute] = {}
        if self._native:
            self._routes |= self._ollama_routes()
        if "openai" in self.dialects:
            self._routes |= {
                "/v1/chat/completions": GenerationRoute(OpenAIDialect(chat=True)),
                "/v1/completions": GenerationRoute(OpenAIDialect(chat=False)),
                "/v1/models": Route("GET", self._v1_models),
            }
        self._routes[STATS_PATH] = Route("GET", self._stats)
        if self.total_slots is not None:
            self._routes["/props"] = Route("GET", self._props)

    def _ollama_routes(self) -> dict[str, Route | GenerationRoute]:
        return {
            "/": Route("GET", self._root),
            "/api/generate": GenerationRoute(OllamaDialect(chat=False)),
            "/api/chat": GenerationRoute(OllamaDialect(chat=True)),
            "/api/embed": Route("POST", self._embed),
            "/api/show": Route("POST", self._show),
            "/api/pull": Route("POST", self._pull),
            "/api/tags": Route("GET", self._tags),
            "/api/ps": Route("GET", self._ps),
            "/api/version": Route("GET", self._show_version),
        }

    async def handle(self, request: Request, connection: ClientConnection) -> None:
        """Answer one request on its connection."""
        exchange = self._begin(request)

        async def answer() -> Response:
            response = await self._respond(exchange)
            self.recorder.answered_with(response.status)
            return response

        try:
            if exchange.fault is not None and exchange.fault.kind in ON_THE_WIRE:
                await send_spoilt(exchange.fault, request, connection, answer)
            else:
                await connection.send(request, await answer())
        finally:
            if exchange.flight is not None:
                exchange.flight.land()

    def _begin(self, request: Request) -> Exchange:
        """Return a request with what is known of it on arrival, counted."""
        try:
            body, is_json = json.loads(request.body or b"null"), True
        except ValueError:
            body, is_json = None, False
        self.recorder.request(LoggedRequest(request.method, request.path, request.headers, body))
        route = self._routes.get(request.path)
        model = str(body.get("model", "")) if isinstance(body, dict) else ""
        exchange = Exchange(request, route, body, is_json, model)
        is_generation = isinstance(route, GenerationRoute) and request.method == "POST"
        if is_generation:
            exchange.flight = Flight(self.recorder)
        if model and (is_generation or request.path == "/api/embed"):
            self.recorder.call_to(model)
        exchange.fault = self.faults.pick(request, model, is_generation)
        if exchange.fault is not None:
            self.recorder.fault(exchange.fault.kind)
        return exchange

    async def _respond(self, exchange: Exchange) -> Response:
        """Return the answer to a request; one that fails is answered with its error."""
        try:
            return await self._answer(exchange)
        except ApiError as error:
            status, text, headers = error.status, str(error), error.headers
        except Exception as error:
            _log.exception("the simulated server failed on %s", exchange.request.path)
            status, text, headers = 500, f"{type(error).__name__}: {error}", {}
        if exchange.flight is not None:
            exchange.flight.land()
        is_openai = exchange.request.path.startswith("/v1/") or not self._native
        dialect = OpenAIDialect(chat=True) if is_openai else OllamaDialect(chat=True)
        return Response(json_bytes(dialect.error(status, text)), status, headers=headers)

    async def _answer(self, exchange: Exchange) -> Response:
        request, route, fault = exchange.request, exchange.route, exchange.fault
        if fault is not None and fault.kind in ERRORS:
            headers = {}
            if fault.kind == "rate_limited":
                headers["Retry-After"] = f"{fault.retry_after_s:g}"
            raise ApiError(ERRORS[fault.kind][0], fault.error_text(exchange.model), headers)
        if fault is not None and fault.kind in BODIES:
            return Response(BODIES[fault.kind])
        if fault is not None and fault.kind == "html":
            return Response(HTML_PAGE, 502, "text/html")
        if fault is not None and fault.kind == "redirect":
            location = ELSEWHERE.rstrip("/") + request.path
            return Response(b"", 307, "text/html", {"Location": location})
        if route is None:
            return self._unrouted(request)
        if request.method != route.method and (request.method, route.method) != ("HEAD", "GET"):
            return Response(b"405 method not allowed", 405, "text/plain")
        if route.method == "POST":
            if not request.body:
                raise ApiError(400, "missing request body")
            if not exchange.is_json:
                raise ApiError(400, "invalid character looking for beginning of value")
            if not isinstance(exchange.body, dict):
                raise ApiError(400, "json: cannot unmarshal value into Go value of type object")
        if isinstance(route, Route):
            return await route.handler(exchange.body)
        assert exchange.flight is not None
        call = route.dialect.read(exchange.body)
        if fault is not None and fault.kind not in IN_THE_ANSWER:
            fault = None
        return await self.generator.serve(call, route.dialect, exchange.flight, fault)

    def _unrouted(self, request: Request) -> Response:
        name = request.path.removeprefix("/v1/models/")
        if "/v1/models" in self._routes and name != request.path and request.method == "GET":
            return _json(self._v1_model(self.generator.find_model(name)))
        return Response(b"404 page not found", 404, "text/plain")

    async def _stats(self, body: object) -> Response:
        stats = vars(self.recorder.snapshot())
        for long in ("last_requests", "queue_lengths"):
            del stats[long]
        return _json(stats)

    async def _root(self, body: object) -> Response:
        return Response(b"Ollama is running", content_type="text/plain; charset=utf-8")

    async def _show_version(self, body: object) -> Response:
        return _json({"version": self.version})

    async def _tags(self, body: object) -> Response:
        return _json({"models": [describe(name) for name in self.generator.models]})

    async def _ps(self, body: object) -> Response:
        models = []
        for model in self.scheduler.loaded():
            entry = describe(model.name)
            del entry["modified_at"]
            entry["size_vram"] = entry["size"]
            entry["context_length"] = model.options[0]
            entry["expires_at"] = model.expires_at().isoformat().replace("+00:00", "Z")
            models.append(entry)
        return _json({"models": models})

    async def _show(self, body: dict[str, Any]) -> Response:
        name = expect(body, "model", str, "") or expect(body, "name", str, "")
        found = self.generator.find_model(name)
        return _json(show(found, self.generator.system_prompts.get(found, "")))

    async def _pull(self, body: dict[str, Any]) -> Response:
        name = expect(body, "model", str, "") or expect(body, "name", str, "")
        if not name:
            raise ApiError(400, "invalid model name")
        if name not in self.generator.models:
            self.generator.models.append(name)
        if not expect(body, "stream", bool, True):
            return _json({"status": "success"})
        return Response(pull_progress(name), content_type="application/x-ndjson")

    async def _embed(self, body: dict[str, Any]) -> Response:
        given = body.get("input")
        texts = given if isinstance(given, list) else [given or ""]
        if not all(isinstance(text, str) for text in texts):
            raise ApiError(400, "invalid input type")
        dimensions = expect(body, "dimensions", int, 0) or EMBEDDING_LENGTH
        call = GenerationRequest(
            model=expect(body, "model", str, ""),
            messages=[],
            stream=False,
            options=expect(body, "options", dict, {}),
            keep_alive_s=parse_keep_alive(body.get("keep_alive")),
        )
        lease = await self.generator.acquire(call)
        try:
            await asyncio.sleep(self.embed_latency_s)
        finally:
            lease.release()
        embed_ns = round(self.embed_latency_s * 1e9)
        return _json(
            {
                "model": call.model,
                "embeddings": [embed(text, dimensions) for text in texts],
                "total_duration": lease.wait_ns + lease.load_ns + embed_ns,
                "load_duration": lease.load_ns,
                "prompt_eval_count": sum(len(tokenise(text)) for text in texts),
            }
        )

    async def _v1_models(self, body: object) -> Response:
        models = [self._v1_model(name) for name in self.generator.models]
        return _json({"object": "list", "data": models})

    def _v1_model(self, name: str) -> dict[str, Any]:
        shown = tagged(name) if self._native else name
        return {"id": shown, "object": "model", "created": 1_785_542_400, "owned_by": "library"}

    async def _props(self, body: object) -> Response:
        return _json(
            {
                "total_slots": self.total_slots,
                "model_path": next(iter(self.generator.models), ""),
                "default_generation_settings": {"n_ctx": DEFAULT_NUM_CTX},
            }
        )


def _json(value: object) -> Response:
    return Response(json_bytes(value))
