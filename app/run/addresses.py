"""The network addresses of this machine: which there are, whether one can be bound, which the system would choose."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from itertools import pairwise
from pathlib import Path

from splitter.errors import InputError

_IPV4 = Path("/proc/net/fib_trie")
_IPV6 = Path("/proc/net/if_inet6")
_IPV6_GLOBAL = "00"
# Nothing is sent there: to connect a UDP socket only chooses a route. Addresses for documentation (RFC 5737, 3849).
_SOMEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def own_address(text: str) -> str:
    """An address that this machine can connect from, in its usual form.

    Raises:
        InputError: it is none, or not this machine's; the message names those there are.
    """
    try:
        address = ip_address(text.strip())
    except ValueError:
        raise InputError(f"{text!r} is no IP address; {_addresses_text()}") from None
    if address.is_unspecified or address.is_multicast:
        raise InputError(f"{address} is no address to connect from; {_addresses_text()}")
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.bind((str(address), 0))
    except OSError:
        raise InputError(f"this machine has no address {address}; {_addresses_text()}") from None
    return str(address)


def is_loopback(address: str) -> bool:
    """Whether an address reaches nothing but this machine."""
    return ip_address(address).is_loopback


def addresses() -> list[str]:
    """The addresses of this machine that others can see, IPv4 first; as far as the system tells."""
    found = {choice for family in _SOMEWHERE if (choice := _choice(family))}
    with suppress(OSError):
        lines = [line.strip() for line in _IPV4.read_text("ascii").splitlines()]
        found |= {before.removeprefix("|-- ") for before, line in pairwise(lines) if line == "/32 host LOCAL"}
    with suppress(OSError):
        rows = (line.split() for line in _IPV6.read_text("ascii").splitlines())
        found |= {str(IPv6Address(int(row[0], 16))) for row in rows if row[3] == _IPV6_GLOBAL}
    seen = (ip_address(one) for one in found if not is_loopback(one))
    return [str(one) for one in sorted(seen, key=lambda one: (one.version, int(one)))]


def system_choice(*, lab: bool) -> set[str]:
    """The addresses that the system connects from where none is bound, to the web or to a lab on this machine."""
    return {"127.0.0.1"} if lab else {choice for family in _SOMEWHERE if (choice := _choice(family))}


def _choice(family: socket.AddressFamily) -> str:
    """The address that leads out; empty where none does."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((_SOMEWHERE[family], 9))
            return str(sock.getsockname()[0])
    except OSError:
        return ""


def _addresses_text() -> str:
    return f"it has {', '.join(addresses()) or 'none but loopback'} (127.0.0.0/8 towards a lab)"
