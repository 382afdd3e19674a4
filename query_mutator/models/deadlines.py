"""HTTP connections that keep one deadline from the first packet to the last byte.

A socket's own time-out starts again with each packet, so that a byte a second keeps a call waiting
for ever, in the handshake, in the headers or in the body.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import requests
import urllib3
from urllib3.util.ssl_ import create_urllib3_context

CONNECT_TIMEOUT_S = 5.0


class _Current(threading.local):
    """The deadline of the request that a thread is making."""

    at = float("inf")


_current = _Current()


@contextlib.contextmanager
def deadline_in(seconds: float) -> Iterator[None]:
    """Until its end, what this thread does on a connection made here must be over in `seconds`."""
    _current.at = time.monotonic() + seconds
    try:
        yield
    finally:
        _current.at = float("inf")


def seconds_left() -> float:
    """The time until the deadline; `TimeoutError` where it has passed."""
    left = _current.at - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return min(left, threading.TIMEOUT_MAX)


class _Socket(socket.socket):
    """A socket that waits for a packet no longer than until the deadline."""

    def recv_into(self, *args: Any) -> int:
        self.settimeout(seconds_left())
        return super().recv_into(*args)

    def sendall(self, *args: Any) -> None:
        self.settimeout(seconds_left())  # Python takes it for all of the data
        super().sendall(*args)


class _TlsSocket(ssl.SSLSocket):
    """The same under TLS, where data is sent in pieces."""

    def recv_into(self, *args: Any) -> int:
        self.settimeout(seconds_left())
        return super().recv_into(*args)

    def send(self, *args: Any) -> int:
        self.settimeout(seconds_left())
        return super().send(*args)


def _connected(host: str, port: int, options: Any) -> socket.socket:
    """A connection to the first address of the host that takes one."""
    failure: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
        found = _Socket(family, kind, protocol)
        try:
            for option in options or ():
                found.setsockopt(*option)
            found.settimeout(min(CONNECT_TIMEOUT_S, seconds_left()))
            found.connect(address)
            # A TLS handshake, which comes next, is over by then or fails.
            found.settimeout(seconds_left())
            return found
        except OSError as error:
            found.close()
            failure = error
    raise failure or OSError(f"{host} has no address")


class _PlainConnection(urllib3.connection.HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _new_connection(self)


class _TlsConnection(urllib3.connection.HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _new_connection(self)


def _new_connection(connection: urllib3.connection.HTTPConnection) -> socket.socket:
    """What urllib3 expects of its own `_new_conn`: a socket, or one of its errors."""
    host = connection.host.strip("[]")
    try:
        return _connected(host, connection.port or 80, connection.socket_options)
    except TimeoutError as error:
        raise urllib3.exceptions.ConnectTimeoutError(connection, "timed out") from error
    except socket.gaierror as error:
        raise urllib3.exceptions.NameResolutionError(host, connection, error) from error
    except (OSError, UnicodeError) as error:
        raise urllib3.exceptions.NewConnectionError(connection, str(error)) from error


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class DeadlineAdapter(requests.adapters.HTTPAdapter):
    """Makes a session's connections keep the deadline of `deadline_in`, through a proxy too."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        # Checks certificates and host names, as urllib3's own does.
        self._tls = create_urllib3_context()
        self._tls.sslsocket_class = _TlsSocket
        super().init_poolmanager(*args, **options, ssl_context=self._tls)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options, ssl_context=self._tls)
        if not proxy.lower().startswith("socks"):  # these make connections of their own
            manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
        return manager
