"""Readers of setting values that commands also take as options. They import no library."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from splitter.catalog.names import Kind
from splitter.errors import InputError

PREFIX = "REVIEWLOOP_"
_PROXY = (
    "write http://HOST:PORT, https://HOST:PORT or socks5h://HOST:PORT, with USER:PASSWORD@ before HOST if it asks "
    "(@, /, ? and # in a password as %40, %2F, %3F, %23)"
)


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database; None for another database, or one in memory."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path != url and path not in ("", ":memory:") else None


def database(text: str) -> str:
    """Return the URL of a database, given as a URL or as a SQLite file. The folder of a cluster stays as it is."""
    plain = not any(mark in text for mark in ":@?") and not Path(text).is_dir()
    return f"sqlite:///{text}" if plain else text


def lab_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT of a lab; only loopback is allowed. Raises InputError."""
    host, _, port = text.rpartition(":")
    try:
        loopback = ip_address(host) in ip_network("127.0.0.0/8")
        number = int(port)
    except ValueError:
        raise InputError(f"lab {text!r}: write HOST:PORT, for example 127.0.0.1:8400") from None
    if not loopback or not 0 < number < 65536:
        raise InputError(f"lab {text!r}: a lab is on loopback (127.0.0.0/8) and a port from 1 to 65535")
    return host, number


def read_kinds(text: str) -> frozenset[Kind]:
    """Read what a node may crawl: `meta`, `microblog`, or both separated by a comma. Raises ValueError."""
    try:
        return frozenset(Kind(word.strip()) for word in text.split(","))
    except ValueError:
        raise ValueError(f"write {','.join(Kind)}, or one of them") from None


def read_proxy(text: str) -> str:
    """Read the address of a proxy. socks5 becomes socks5h: every proxy resolves names itself.

    Raises:
        ValueError: it is none. The message does not repeat it, because it may hold a password.
    """
    try:
        parsed = urlsplit(text.strip())
        whole = parsed.hostname and parsed.port
    except ValueError:  # its message holds what stands where the port should be
        whole = None
    if not whole or parsed.path not in ("", "/") or parsed.query or parsed.fragment:
        raise ValueError(_PROXY) from None
    scheme = "socks5h" if parsed.scheme == "socks5" else parsed.scheme
    if scheme not in ("http", "https", "socks5h"):
        raise ValueError(_PROXY)
    return f"{scheme}://{parsed.netloc}"
