"""Bind sockets to addresses for the dashboard, and make URLs at which browsers reach it."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from splitter.errors import InputError, system_reason

DEFAULT_PORT = 8787


def split_public(address: str) -> tuple[str, str]:
    """Split a public address: https://example.com/reviews/ gives https://example.com (origin) and /reviews (path)."""
    parts = urlsplit(address)
    return address and f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")


def is_loopback(host: str) -> bool:
    """Return True if an address can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address and port. Port 0 stands for any free port.

    Raises:
        InputError: the address is taken, not allowed, or not an address of this machine.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None


def listening_near(port: int) -> socket.socket:
    """Return a socket bound to a port of 127.0.0.1. If the port is taken, another free port is used."""
    try:
        return listening("127.0.0.1", port)
    except InputError:
        return listening("127.0.0.1", 0)


def _cannot_listen(host: str, port: int, error: OSError) -> InputError:
    if error.errno == errno.EADDRINUSE:
        return InputError(
            "port {port} of {host} is taken by another program: choose another with --port, or 0 for any",
            port=port,
            host=host,
        )
    if error.errno == errno.EACCES:
        return InputError(
            "port {port} needs rights that this user has not: choose one above 1023 with --port", port=port
        )
    return InputError(
        "{host} is no address of this machine ({reason}): write 127.0.0.1",
        host=host,
        reason=system_reason(error),
    )


def address_of(sock: socket.socket) -> str:
    """Return the URL at which a browser reaches a bound socket."""
    host, port = sock.getsockname()[:2]
    named = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    return f"http://[{named}]:{port}/" if ":" in named else f"http://{named}:{port}/"
