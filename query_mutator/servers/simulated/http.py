"""A small HTTP/1.1 server side: hand-parsed requests, keep-alive, and whole or chunked answers."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import struct
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 256 * 1024 * 1024
CLOSED_REQUEST = (499, "Client Closed Request")
"""A status of nginx and of Ollama that no standard knows."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """One HTTP request; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    keep_alive: bool = True
    http_1_0: bool = False


@dataclass(slots=True)
class Response:
    """One HTTP answer, whose body is bytes or a stream of pieces."""

    body: bytes | AsyncGenerator[bytes, None]
    status: int = 200
    content_type: str = "application/json; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)

    async def collect(self) -> bytes:
        """Return the whole body, waiting for a stream to end."""
        if not isinstance(self.body, bytes):
            async with aclosing(self.body) as pieces:
                self.body = b"".join([piece async for piece in pieces])
        return self.body


class ProtocolError(Exception):
    """What a peer sent is not HTTP that is served here."""

    def __init__(self, status: int) -> None:
        super().__init__(HTTPStatus(status).phrase)
        self.status = status


Handler = Callable[[Request, "ClientConnection"], Awaitable[None]]


class ClientConnection(asyncio.Protocol):
    """One client's connection: hands its requests to the handler one after the other."""

    def __init__(
        self, handler: Handler, connections: set[ClientConnection], cancel_on_loss: bool
    ) -> None:
        self._handler = handler
        self._connections = connections
        self._cancel_on_loss = cancel_on_loss
        self._buffer = bytearray()
        self._head: tuple[Request, int] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport
        self.task: asyncio.Task[None] | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._writable.set()
        self._connections.discard(self)
        if self.task is not None and self._cancel_on_loss:
            self.task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self.task is None:
            self._take_request()

    def reset(self) -> None:
        """Drop the connection so that the peer sees a reset."""
        self.lost = True
        # A linger time of zero makes the close send RST in place of FIN.
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, linger
        )
        self._transport.abort()

    def close(self) -> None:
        """Close the connection once what was written has gone out."""
        self.lost = True
        self._transport.close()

    async def write(self, data: bytes) -> None:
        """Send bytes as they are, waiting while the peer reads too slowly."""
        if self.lost or self._transport.is_closing():
            return
        self._transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    async def send(self, request: Request, response: Response) -> None:
        """Send an answer, with its length where the body is bytes, else in chunks."""
        if request.method == "HEAD" or request.http_1_0:
            await response.collect()
        if isinstance(response.body, bytes):
            body = b"" if request.method == "HEAD" else response.body
            await self.write(head(request, response, len(response.body)) + body)
            return
        async with aclosing(response.body) as pieces:
            await self.write(head(request, response, None))
            async for piece in pieces:
                if not piece:  # An empty chunk would end the body.
                    continue
                await self.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await self.write(b"0\r\n\r\n")

    def _take_request(self) -> None:
        try:
            request = self._parse()
        except ProtocolError as error:
            self._transport.write(
                b"HTTP/1.1 %d %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                % (error.status, str(error).encode())
            )
            self.close()
            return
        if request is not None:
            self.task = asyncio.get_running_loop().create_task(self._serve(request))

    async def _serve(self, request: Request) -> None:
        try:
            await self._handler(request, self)
            if not request.keep_alive:
                self.close()
        except asyncio.CancelledError:
            # Only a lost connection or a crash of the server cancels; nobody is left to answer.
            pass
        except Exception:
            _log.exception("the simulated server failed on %s", request.path)
            self.reset()
        finally:
            self.task = None
        if self._buffer and not self.lost:
            self._take_request()

    def _parse(self) -> Request | None:
        """Return the next request, or None while some of it is still to come."""
        buffer = self._buffer
        if self._head is None:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(buffer) > MAX_HEAD_BYTES:
                    raise ProtocolError(431)
                return None
            self._head = parse_head(bytes(buffer[:end]))
            del buffer[: end + 4]
            if self._head[1] > len(buffer) and "expect" in self._head[0].headers:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request, length = self._head
        if len(buffer) < length:
            return None
        request.body = bytes(buffer[:length])
        del buffer[:length]
        self._head = None
        return request


def parse_head(data: bytes) -> tuple[Request, int]:
    """Return the request that a head announces and the length of its body."""
    request_line, *lines = data.decode("latin-1").split("\r\n")
    try:
        method, target, version = request_line.split(" ")
        headers = {}
        for line in lines:
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", 0))
    except ValueError:
        raise ProtocolError(400) from None
    if "transfer-encoding" in headers:
        raise ProtocolError(411)
    if not 0 <= length <= MAX_BODY_BYTES:
        raise ProtocolError(413 if length > 0 else 400)
    old = version == "HTTP/1.0"
    connection = headers.get("connection", "").lower()
    keep_alive = connection == "keep-alive" if old else connection != "close"
    request = Request(
        method, target.partition("?")[0], headers, keep_alive=keep_alive, http_1_0=old
    )
    return request, length


def head(request: Request, response: Response, length: int | None) -> bytes:
    """Return the head of an answer; a length of None announces chunks."""
    lines = [
        _status_line(response.status),
        f"Content-Type: {response.content_type}",
        f"Date: {_http_date(int(time.time()))}",
        "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}",
    ]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    if not request.keep_alive:
        lines.append("Connection: close")
    elif request.http_1_0:
        lines.append("Connection: keep-alive")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@functools.cache
def _status_line(status: int) -> str:
    phrase = CLOSED_REQUEST[1] if status == CLOSED_REQUEST[0] else HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {phrase}"


@functools.lru_cache(maxsize=2)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)
