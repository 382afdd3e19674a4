"""JSON over HTTP with deadlines: one keep-alive session for each thread."""

from __future__ import annotations

import contextlib
import http.client
import http.cookiejar
import math
import os
import ssl
import threading
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NoReturn

import requests
import urllib3

from query_mutator.base.untrusted import parse_json
from query_mutator.models.addresses import is_loopback
from query_mutator.models.calls import CallFailedError
from query_mutator.models.deadlines import (
    CONNECT_TIMEOUT_S,
    DeadlineAdapter,
    deadline_in,
    seconds_left,
)

MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_WAIT_S = 3600.0
RETRYABLE_STATUS = {408, 429}
SECRET_LENGTH = 8
"""Shorter keys are words that stand in any answer."""
CERTIFICATE_FILES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Environment variables that name a file of certificates to trust."""


class HttpServer:
    """A model server at `url`; every request ends in a JSON object or a `CallFailedError`.

    The deadline of a request holds for all of it: connecting, sending, and reading to the end.
    """

    def __init__(self, url: str, *, timeout_s: float = 60.0, api_key: str | None = None) -> None:
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s
        self._api_key = api_key
        self._local = threading.local()
        self._sessions: list[requests.Session] = []
        self._lock = threading.Lock()

    def get(self, path: str, *, timeout_s: float | None = None) -> dict[str, Any]:
        return self._request("GET", path, None, timeout_s)

    def post(
        self, path: str, payload: dict[str, Any], *, timeout_s: float | None = None
    ) -> dict[str, Any]:
        return self._request("POST", path, payload, timeout_s)

    def close(self) -> None:
        with self._lock:
            for session in self._sessions:
                session.close()
            self._sessions.clear()

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            # Of the environment only what is wanted: a password in .netrc would take the place of
            # the key, and a proxy set for the internet would swallow calls to this machine.
            session.trust_env = False
            session.verify = _certificates()
            session.proxies.update(self._proxies())
            if self._api_key:
                session.headers["Authorization"] = f"Bearer {self._api_key}"
            # A cookie would have calls depend on those before, and the jar grow with them.
            session.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
            session.mount("http://", DeadlineAdapter())
            session.mount("https://", DeadlineAdapter())
            self._local.session = session
            with self._lock:
                self._sessions.append(session)
        return session

    def _proxies(self) -> dict[str, str]:
        """The proxies that the environment names; none that would read the key."""
        if is_loopback(self.url) or (self._api_key and self.url.startswith("http://")):
            return {}
        return requests.utils.get_environ_proxies(self.url)

    def _request(
        self, method: str, path: str, payload: dict[str, Any] | None, timeout_s: float | None
    ) -> dict[str, Any]:
        timeout_s = timeout_s or self.timeout_s
        try:
            with (
                deadline_in(timeout_s),
                self._session().request(
                    method,
                    self.url + path,
                    json=payload,
                    timeout=(min(CONNECT_TIMEOUT_S, timeout_s), timeout_s),
                    stream=True,
                    # A redirect would turn the POST into a GET and carry the key to another host.
                    allow_redirects=False,
                ) as response,
            ):
                body = _read_body(response)
        except WENT_WRONG as error:
            self._refuse(error, timeout_s)
        return _checked_json(response, self._parsed(body))

    def _parsed(self, body: bytes) -> Any:
        """The JSON of a body, None where it is none."""
        data: Any = None
        with contextlib.suppress(ValueError):
            data = parse_json(body)
        if self._api_key and len(self._api_key) >= SECRET_LENGTH:
            # A server may repeat the key, and what it says is kept.
            with contextlib.suppress(RecursionError):
                return _without(data, self._api_key)
            return None
        return data

    def _refuse(self, error: Exception, timeout_s: float) -> NoReturn:
        """Raises what a request that failed with `error` means for its call."""
        causes = _causes(error)
        kind, retryable = "connection", True
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            retryable = False
            reason = (
                f"the certificate of {self.url} is not trusted: name the file with its authority "
                "in REQUESTS_CA_BUNDLE or SSL_CERT_FILE"
            )
        elif any(map(_is_timeout, causes)):
            kind = "timeout"
            reason = f"no answer from {self.url} within {timeout_s:g} s"
        elif isinstance(error, NO_REQUEST):
            kind, retryable = "bad_request", False
            reason = f"cannot ask {self.url}: {type(error).__name__}"
        else:
            reason = f"connection to {self.url} failed: {_in_words(causes)}"
        raise CallFailedError(kind, reason, retryable=retryable) from None


WENT_WRONG = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)
TIMED_OUT = (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)
NO_REQUEST = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidHeader,
    requests.exceptions.InvalidJSONError,
    urllib3.exceptions.LocationParseError,
    UnicodeError,
)


def _is_timeout(error: BaseException) -> bool:
    # To urllib3 a refused connection is a kind of time-out.
    refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    return isinstance(error, TIMED_OUT) and not refused


def _certificates() -> str | bool:
    """The file of certificates that the environment names, else True for the usual ones."""
    named = next(filter(None, map(os.environ.get, CERTIFICATE_FILES)), None)
    return named if named and Path(named).exists() else True


def _read_body(response: requests.Response) -> bytes:
    """The whole body; too long a one is not read to its end, be it packed ever so small."""
    chunks = []
    size = 0
    while chunk := response.raw.read1(65536, decode_content=True):
        seconds_left()  # what is there at once passes no socket
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise CallFailedError(
                "malformed", f"answer larger than {MAX_BODY_BYTES} bytes", retryable=False
            )
    expected = response.headers.get("Content-Length")
    plain = not response.headers.get("Content-Encoding")
    if plain and expected and expected.isdecimal() and size < _whole(expected):
        raise CallFailedError(
            "connection",
            f"answer broke off after {size} of {_whole(expected)} bytes",
            retryable=True,
        )
    return b"".join(chunks)


def _without(data: Any, secret: str) -> Any:
    """The value with a word in place of `secret`, wherever a text in it holds that."""
    if isinstance(data, str):
        return data.replace(secret, "[key]")
    if isinstance(data, list):
        return [_without(item, secret) for item in data]
    if isinstance(data, dict):
        return {_without(name, secret): _without(item, secret) for name, item in data.items()}
    return data


def _checked_json(response: requests.Response, data: Any) -> dict[str, Any]:
    status = response.status_code
    if status == 200 and isinstance(data, dict):
        if data.get("error"):  # a stream that broke after its first byte says so with a 200
            raise CallFailedError("server_error", error_text(data), retryable=True)
        return data
    if status == 200:
        raise CallFailedError("malformed", "the answer is not a JSON object", retryable=True)
    reason = f"HTTP {status}"
    if isinstance(data, dict) and "error" in data:
        reason += f": {error_text(data)}"
    if status >= 500 or status in RETRYABLE_STATUS:
        kind = "busy" if status in {429, 503} else "server_error"
        raise CallFailedError(kind, reason, retryable=True, retry_after_s=_retry_after(response))
    kind = "not_found" if status == 404 else "bad_request"
    raise CallFailedError(kind, reason, retryable=False)


def error_text(data: dict[str, Any]) -> str:
    """The server's words on an error: Ollama sends a string, OpenAI-compatible ones an object."""
    error = data["error"]
    if isinstance(error, dict):
        error = error.get("message")
    return error[:300] if isinstance(error, str) else "it does not say why"


def _whole(digits: str) -> int:
    """A number in a header; one with thousands of digits is as good as any large one."""
    return int(digits[:18])


def _retry_after(response: requests.Response) -> float | None:
    value = response.headers.get("Retry-After", "").strip()[:100]
    seconds: float | None = None
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        seconds = parsedate_to_datetime(value).timestamp() - time.time()
    with contextlib.suppress(ValueError):
        seconds = float(value)
    if seconds is None or math.isnan(seconds):
        return None
    return min(max(0.0, seconds), MAX_WAIT_S)


def _causes(error: BaseException) -> list[BaseException]:
    """The error and what it was made of: requests wraps a refused connection three times."""
    found: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting and len(found) < 20:
        one = waiting.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found


def _in_words(causes: list[BaseException]) -> str:
    """Why a connection failed, in words that quote nothing of what was sent."""
    text = " ".join(str(cause) for cause in causes)
    for phrase in (
        "Connection refused",
        "Name or service not known",
        "Connection reset",
        "Remote end closed connection",
        "Cannot connect to proxy",
        "Network is unreachable",
        "No route to host",
        "Broken pipe",
    ):
        if phrase.casefold() in text.casefold():
            return phrase.lower()
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "no TLS connection could be made; is it https?"
    if "Name resolution" in text or any("gaierror" in type(cause).__name__ for cause in causes):
        return "name or service not known"
    if any(isinstance(cause, urllib3.exceptions.IncompleteRead) for cause in causes):
        return "the answer broke off"
    if any(isinstance(cause, urllib3.exceptions.HTTPError) for cause in causes):
        return "what came back is not HTTP"
    return type(causes[-1]).__name__
