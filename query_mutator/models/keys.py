"""Which servers are sent the key of the environment: those the user means it for, and no other."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from query_mutator.base.errors import UserError
from query_mutator.base.weights import EMBEDDED
from query_mutator.models.addresses import is_loopback, normalise_url

logger = logging.getLogger(__name__)

API_KEY_VARIABLE = "QUERY_MUTATOR_API_KEY"
KEY_HOST_VARIABLE = "QUERY_MUTATOR_API_KEY_HOST"
"""Names the hosts that the key is for, with commas between them."""


def keys_for(urls: Iterable[str]) -> dict[str, str | None]:
    """The key for each of the servers that the user named.

    Where they are on several hosts, the user must have said whose it is.
    """
    urls = list(urls)
    key = _key()
    if key is None:
        return dict.fromkeys(urls)
    hosts = _told_hosts()
    found = {urlsplit(url).hostname for url in urls}
    if not hosts and len(found) > 1:
        raise UserError(
            f"{API_KEY_VARIABLE} is one key, and the servers are on {len(found)} hosts: name those "
            f"that it is for in {KEY_HOST_VARIABLE}, with commas between them"
        )
    keys = {url: key if not hosts or _is_told(url, hosts) else None for url in urls}
    for url, sent in keys.items():
        if sent and url.startswith("http://") and not is_loopback(url):
            logger.warning("the key goes to %s without encryption; use https if you can", url)
    return keys


def check_servers_of_file(servers: Iterable[str], file: object) -> None:
    """Refuses to send the key to a server that only a file names, not the user."""
    hosts = _told_hosts()
    if _key() is None:
        return
    for server in servers:
        if server in {"auto", EMBEDDED} or is_loopback(url := normalise_url(server)):
            continue
        # Hosts that the user told are the key's, but not without encryption on a file's word.
        if hosts and (url.startswith("https://") or not _is_told(url, hosts)):
            continue
        host = f" or set {KEY_HOST_VARIABLE}={urlsplit(url).hostname}" if not hosts else ""
        raise UserError(
            f"{file} names the server {url}, and {API_KEY_VARIABLE} is set: should the key go "
            f"there?\nIf so, add --server {url}{host}"
        )


def _key() -> str | None:
    key = os.environ.get(API_KEY_VARIABLE, "").strip()
    # Other characters would end the header, or begin another.
    if not all("!" <= character <= "~" for character in key):
        raise UserError(f"{API_KEY_VARIABLE} holds characters that no key has")
    return key or None


def _told_hosts() -> set[str]:
    names = os.environ.get(KEY_HOST_VARIABLE, "").casefold().split(",")
    return {host.strip() for host in names if host.strip()}


def _is_told(url: str, hosts: set[str]) -> bool:
    parts = urlsplit(url)
    return bool({parts.hostname, parts.netloc.casefold()} & hosts)
