"""From what a user types to the address of a server."""

from __future__ import annotations

import contextlib
import ipaddress
from urllib.parse import urlsplit

from query_mutator.base.errors import UserError

OLLAMA_PORT = 11434


def is_loopback(url: str) -> bool:
    """True where the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def ollama_url(host: str | None) -> str:
    """The URL that OLLAMA_HOST means, by Ollama's own rules.

    >>> ollama_url(None), ollama_url("box"), ollama_url("http://box")
    ('http://127.0.0.1:11434', 'http://box:11434', 'http://box:80')
    >>> ollama_url("0.0.0.0"), ollama_url(":1234"), ollama_url("https://box/ollama")
    ('http://127.0.0.1:11434', 'http://127.0.0.1:1234', 'https://box:443/ollama')
    """
    text = (host or "").strip().strip("\"'")
    _check_plain(text, "OLLAMA_HOST")
    scheme, found, rest = text.partition("://")
    scheme = scheme.lower()
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

    >>> normalise_url("localhost:8000"), normalise_url("HTTP://box:8000/v1/")
    ('http://localhost:8000', 'http://box:8000')
    """
    _check_plain(text, "--server")
    scheme, found, rest = text.strip().partition("://")
    url = f"{scheme.lower()}://{rest}" if found else f"http://{text.strip()}"
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


def _check_plain(text: str, flag: str) -> None:
    """Refuses an address with more in it than where the server is; nothing secret is quoted."""
    authority = (text.partition("://")[2] or text).partition("/")[0]
    if "@" in authority or "?" in text or "#" in text:
        raise UserError(
            f"{flag} must be an address without user name, password or query; a key goes into "
            "the environment variable QUERY_MUTATOR_API_KEY"
        )
    if not text.strip().isprintable() or " " in text.strip():
        raise UserError(f"{flag} {text!r} is not a server: it holds characters no address has")
