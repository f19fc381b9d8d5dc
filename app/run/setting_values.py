"""Parse values of settings that are also options of commands. This module imports no library.

Addresses are checked by `tasks.domain.given_address`, so that no error quotes an address, which may have a password.
"""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from splitter.catalog.names import Kind
from splitter.errors import InputError, WrongValue
from tasks.domain.given_address import AddressKind, read_address, read_redis

PREFIX = "REVIEWLOOP_"
_ROOT_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database; None for another kind of database, or one in memory."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path != url and path not in ("", ":memory:") else None


def database(text: str) -> str:
    """Return the URL of a database, given as URL or SQLite file. The path of a cluster's folder is returned unchanged.

    Raises:
        InputError: the text is none of these.
    """
    if _is_folder(text):
        return text
    if not any(mark in text for mark in ":@?"):
        return f"sqlite:///{text}"
    read_address(AddressKind.DATABASE, text)
    return text.strip()


def _is_folder(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):  # the name is not possible for a file
        return False


def read_redis_url(text: str) -> str:
    """Return the URL of a Redis or its sentinels unchanged if it is usable. Raises InputError."""
    read_redis(text)
    return text


def read_searxng_url(text: str) -> str:
    """Return the URL of a SearXNG unchanged if it is usable. Raises InputError."""
    read_address(AddressKind.SEARCH_ENGINE, text)
    return text


def lab_address(text: str) -> tuple[str, int]:
    """Return host and port of a lab from HOST:PORT. Only a loopback address is allowed. Raises InputError."""
    address = read_address(AddressKind.LAB, text)
    try:
        is_loopback = ip_address(address.host) in ip_network("127.0.0.0/8")
    except ValueError:
        is_loopback = False
    if not is_loopback or address.port is None:
        raise InputError("a lab is on loopback (127.0.0.0/8): write HOST:PORT, for example 127.0.0.1:8400")
    return address.host, address.port


def read_kinds(text: str) -> frozenset[Kind]:
    """Read what a node may crawl: `meta`, `microblog`, or both separated by a comma. Raises WrongValue."""
    try:
        return frozenset(Kind(word.strip()) for word in text.split(","))
    except ValueError:
        raise WrongValue("write {kinds}, or one of them", kinds=",".join(Kind)) from None


def read_proxy(text: str) -> str:
    """Return the URL of a proxy. socks5 is replaced by socks5h, so that the proxy resolves host names.

    Raises:
        InputError: the address is wrong. The message does not quote it, as it may contain a password.
    """
    address = read_address(AddressKind.PROXY, text)
    scheme = "socks5h" if address.scheme == "socks5" else address.scheme
    return f"{scheme}://{address.netloc}"


def read_public_address(text: str) -> str:
    """Return the address at which browsers reach a dashboard that is behind a proxy. Raises InputError."""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise InputError("write the address that browsers see, as https://example.com/reviews/") from None
    if text and (not is_whole or "@" in parts.netloc or parts.query or parts.fragment):
        raise InputError("write the address that browsers see, as https://example.com/reviews/")
    read_root_path(parts.path)
    return text


def read_root_path(text: str) -> str:
    """Return the path under which a proxy serves the dashboard, without a slash at its end. Raises InputError."""
    path = text.rstrip("/")
    if not _ROOT_PATH.fullmatch(path):
        raise InputError("write a path of letters, digits and -._~ that begins with /, as /reviews")
    return path
