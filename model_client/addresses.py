"""From what a user types to the address of a server."""

from __future__ import annotations

from urllib.parse import urlsplit

from errors import UserError

OLLAMA_PORT = 11434


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
