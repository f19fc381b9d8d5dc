"""Readers of setting values that commands also take as options. They import no library.

Addresses are judged by `tasks.domain.given_address`: no error repeats one.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path

from splitter.catalog.names import Kind
from splitter.errors import InputError, WrongValue
from tasks.domain.given_address import AddressKind, read_address, read_redis

PREFIX = "REVIEWLOOP_"


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database; None for another database, or one in memory."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path != url and path not in ("", ":memory:") else None


def database(text: str) -> str:
    """Return the URL of a database, given as a URL or as a SQLite file. The folder of a cluster stays as it is.

    Raises:
        InputError: it is neither.
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
    except (OSError, ValueError):  # a name that no file can have
        return False


def read_redis_url(text: str) -> str:
    """Check the address of a Redis, or of its sentinels. Raises InputError."""
    read_redis(text)
    return text


def read_searxng_url(text: str) -> str:
    """Check the address of a SearXNG. Raises InputError."""
    read_address(AddressKind.SEARCH_ENGINE, text)
    return text


def lab_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT of a lab; only loopback is allowed. Raises InputError."""
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
    """Read the address of a proxy. socks5 becomes socks5h: every proxy resolves names itself.

    Raises:
        InputError: it is none. The message does not repeat it, because it may hold a password.
    """
    address = read_address(AddressKind.PROXY, text)
    scheme = "socks5h" if address.scheme == "socks5" else address.scheme
    return f"{scheme}://{address.netloc}"
