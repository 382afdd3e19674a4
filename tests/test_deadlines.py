"""Servers that keep one waiting, in every part of an answer: the deadline holds over all of it."""

from __future__ import annotations

import gzip
import itertools
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from query_mutator.base.errors import UserError
from query_mutator.models.calls import CallFailedError
from query_mutator.models.connect import connect
from query_mutator.models.http import CERTIFICATE_FILES, MAX_BODY_BYTES, HttpServer
from query_mutator.models.settings import ModelSettings

CERTIFICATE = Path(__file__).with_name("certificates") / "loopback.crt"
OK = b"HTTP/1.1 200 OK\r\n"

Behaviour = Callable[[socket.socket, threading.Event], None]


@pytest.fixture(autouse=True)
def _usual_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in CERTIFICATE_FILES:
        monkeypatch.delenv(variable, raising=False)


@contextmanager
def raw_server(*behaviours: Behaviour) -> Iterator[str]:
    """A server on loopback that does to each connection what is said, until the end.

    Of several behaviours each is for one connection, in order, and the last for all further ones.
    """
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            for turn in itertools.count():
                connection = listener.accept()[0]
                behave = behaviours[min(turn, len(behaviours) - 1)]
                threading.Thread(target=handle, args=[connection, behave], daemon=True).start()

    def handle(connection: socket.socket, behave: Behaviour) -> None:
        with connection, suppress(OSError):
            behave(connection, over)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def drip(start: bytes, drops: bytes = b"x") -> Behaviour:
    """Sends the start, then drop after drop, each well within any socket's own time-out."""

    def behave(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(start)
        while not over.wait(0.05):
            connection.sendall(drops)

    return behave


def flood(start: bytes, again: bytes) -> Behaviour:
    def behave(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(start)
        while not over.is_set():
            connection.sendall(again)

    return behave


def silent(connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def failure_of(url: str, *, timeout_s: float = 0.3, **options: object) -> CallFailedError:
    server = HttpServer(url, timeout_s=timeout_s)
    with pytest.raises(CallFailedError) as caught:
        server.post("/api/chat", {"model": "m", **options})
    server.close()
    return caught.value


@pytest.mark.parametrize(
    "behave",
    [
        silent,
        drip(b"HTTP/1.1 2"),
        drip(OK + b"X-Slow: "),
        drip(OK + b"Content-Length: 100000\r\n\r\n{"),
        drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    ],
    ids=["silent", "status", "headers", "body", "chunks", "chunk-size", "1xx", "endless-1xx"],
)
def test_a_server_that_drips_is_given_up_at_the_deadline(behave: Behaviour) -> None:
    with raw_server(behave) as url:
        error = failure_of(url)
    assert (error.failure.kind, error.retryable) == ("timeout", True)
    assert "within 0.3 s" in error.failure.reason


def test_a_server_that_reads_nothing_is_given_up_at_the_deadline() -> None:
    with raw_server(silent) as url:
        assert failure_of(url, prompt="x" * 30_000_000).failure.kind == "timeout"


def test_a_handshake_that_never_ends_is_given_up_at_the_deadline() -> None:
    with raw_server(silent) as url:
        assert failure_of(url.replace("http:", "https:")).failure.kind == "timeout"


def test_a_drip_under_tls_is_given_up_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with raw_server(under_tls(drip(OK + b"X-Slow: "))) as url:
        assert failure_of(url.replace("http:", "https:"), timeout_s=1).failure.kind == "timeout"


def under_tls(behave: Behaviour) -> Behaviour:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_suffix(".key"))

    def wrapped(connection: socket.socket, over: threading.Event) -> None:
        with context.wrap_socket(connection, server_side=True) as inner:
            behave(inner, over)

    return wrapped


def answering(body: bytes, *headers: bytes, status: bytes = OK) -> Behaviour:
    def behave(connection: socket.socket, over: threading.Event) -> None:
        while connection.recv(65536):
            head = b"".join(header + b"\r\n" for header in headers)
            length = b"Content-Length: %d\r\n" % len(body)
            connection.sendall(status + head + length + b"\r\n" + body)

    return behave


def test_certificates_are_checked_and_the_user_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with raw_server(under_tls(answering(b'{"version": "1"}'))) as url:
        url = url.replace("http:", "https:")
        with pytest.raises(
            UserError, match=r"certificate of .* is not trusted.*REQUESTS_CA_BUNDLE"
        ):
            connect(ModelSettings(url, target_model="m"))
        for variable in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
            with monkeypatch.context() as environment:
                environment.setenv(variable, str(CERTIFICATE))
                assert HttpServer(url).get("/api/version") == {"version": "1"}


def test_a_trusted_certificate_of_another_host_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))
    with raw_server(under_tls(answering(b'{"version": "1"}'))) as url:
        right = url.replace("http:", "https:")
        assert HttpServer(right).get("/api/version") == {"version": "1"}
        error = failure_of(right.replace("127.0.0.1", "localhost"), timeout_s=30)
    assert "is not trusted" in error.failure.reason
    assert not error.retryable


@pytest.mark.parametrize(
    "behave",
    [
        flood(OK, b"X-More: and more\r\n" * 100),
        flood(OK + b"X-Long: ", b"x" * 65536),
        flood(b"", b"\x00\xff" * 1000),
        flood(b"SSH-2.0-OpenSSH_9.9\r\n", b"\r\n"),
        answering(b"{}", b"Content-Encoding: gzip"),
        answering(b"zz\r\n", status=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"),
    ],
)
def test_what_is_not_http_is_a_failed_connection(behave: Behaviour) -> None:
    with raw_server(behave) as url:
        error = failure_of(url, timeout_s=30)
    assert error.failure.kind == "connection"
    assert error.failure.reason.isprintable()


def test_too_large_an_answer_is_not_read_to_its_end() -> None:
    with raw_server(flood(OK + b"Content-Length: 104857600\r\n\r\n", b" " * 65536)) as url:
        error = failure_of(url, timeout_s=30)
    assert error.failure.kind == "malformed"
    assert "larger than" in error.failure.reason


def test_a_packed_answer_is_bounded_while_it_is_unpacked() -> None:
    bomb = gzip.compress(b" " * 100_000_000, compresslevel=1)
    with raw_server(answering(bomb, b"Content-Encoding: gzip")) as url:
        tracemalloc.start()
        error = failure_of(url, timeout_s=30)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert "larger than" in error.failure.reason
    assert most < 3 * MAX_BODY_BYTES


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"n": ' + b"9" * 10_000 + b"}",
        b'{"n": NaN}',
        b'{"a": [' + b"[]," * 2_000_000 + b"[]]}",
        b'{"text": "\xff\xfe"}',
        b"\x00" * 1000,
        b"",
        b"3",
    ],
)
def test_json_that_is_out_of_proportion_is_a_malformed_answer(body: bytes) -> None:
    with raw_server(answering(body)) as url:
        assert failure_of(url, timeout_s=30).failure.kind == "malformed"


@pytest.mark.parametrize("value", [b"1e400", b"nan", b"-5", b"inf", b"x" * 9000, b"9" * 5000])
def test_an_absurd_wish_to_wait_is_bounded(value: bytes) -> None:
    with raw_server(
        answering(b"{}", b"Retry-After: " + value, status=b"HTTP/1.1 503 Busy\r\n")
    ) as url:
        error = failure_of(url, timeout_s=30)
    assert error.retry_after_s is None or 0 <= error.retry_after_s <= 3600


def test_calls_after_a_failed_one_are_answered_over_the_same_client() -> None:
    good, refused = answering(b'{"version": "1"}'), answering(b"", status=b"HTTP/1.1 500 No\r\n")
    # What comes after has one connection: a call over a further one would fail.
    with raw_server(silent, good, refused) as url:
        server = HttpServer(url, timeout_s=0.3)
        with pytest.raises(CallFailedError):
            server.get("/api/version")
        for _ in range(3):
            assert server.get("/api/version", timeout_s=30) == {"version": "1"}
