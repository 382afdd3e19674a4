"""JSON over HTTP with deadlines: one keep-alive session for each thread."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import threading
import time
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from model_client.calls import CallFailedError

CONNECT_TIMEOUT_S = 5.0
MAX_BODY_BYTES = 16 * 1024 * 1024
RETRYABLE_STATUS = {408, 429}


def is_loopback(url: str) -> bool:
    """True where the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class HttpServer:
    """A model server at `url`; every request ends in a JSON object or a `CallFailedError`."""

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
            # A proxy set for the internet must not swallow calls to this machine.
            session.trust_env = not is_loopback(self.url)
            if self._api_key:
                session.headers["Authorization"] = f"Bearer {self._api_key}"
            self._local.session = session
            with self._lock:
                self._sessions.append(session)
        return session

    def _request(
        self, method: str, path: str, payload: dict[str, Any] | None, timeout_s: float | None
    ) -> dict[str, Any]:
        timeout_s = timeout_s or self.timeout_s
        deadline = time.monotonic() + timeout_s
        try:
            with self._session().request(
                method,
                self.url + path,
                json=payload,
                timeout=(min(CONNECT_TIMEOUT_S, timeout_s), timeout_s),
                stream=True,
                # A redirect would turn the POST into a GET and carry the key to another host.
                allow_redirects=False,
            ) as response:
                body = _read_body(response, deadline)
        except (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError) as error:
            raise CallFailedError(
                "timeout", f"no answer from {self.url} within {timeout_s:g} s", retryable=True
            ) from error
        except (
            requests.ConnectionError,
            requests.exceptions.ChunkedEncodingError,
            urllib3.exceptions.HTTPError,
            OSError,
        ) as error:
            raise CallFailedError(
                "connection", f"connection to {self.url} failed: {_cause(error)}", retryable=True
            ) from error
        except (requests.RequestException, ValueError) as error:
            raise CallFailedError(
                "bad_request", f"cannot ask {self.url}: {error}", retryable=False
            ) from error
        return _checked_json(response, body)


def _read_body(response: requests.Response, deadline: float) -> bytes:
    """The whole body, bounded in size and in time (a drip of bytes resets a socket's time-out)."""
    chunks = []
    size = 0
    while chunk := response.raw.read1(65536, decode_content=True):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise CallFailedError(
                "malformed", f"answer larger than {MAX_BODY_BYTES} bytes", retryable=False
            )
        if time.monotonic() > deadline:
            raise TimeoutError
    expected = response.headers.get("Content-Length")
    plain = not response.headers.get("Content-Encoding")
    if plain and expected and expected.isdigit() and size < int(expected):
        raise CallFailedError(
            "connection", f"answer broke off after {size} of {expected} bytes", retryable=True
        )
    return b"".join(chunks)


def _checked_json(response: requests.Response, body: bytes) -> dict[str, Any]:
    status = response.status_code
    data: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(body)
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
        error = error.get("message", error)
    return str(error)[:300]


def _retry_after(response: requests.Response) -> float | None:
    value = response.headers.get("Retry-After", "").strip()
    if not value:
        return None
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return None


def _cause(error: BaseException) -> str:
    """The innermost reason: requests wraps a refused connection three times."""
    text = str(error)
    for phrase in (
        "Connection refused",
        "Name or service not known",
        "Connection reset",
        "Remote end closed connection",
    ):
        if phrase in text:
            return phrase.lower()
    return text.rsplit(":", 1)[-1].strip(" ')\"(")[:120] or type(error).__name__
