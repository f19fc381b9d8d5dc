"""The guard of addresses: no private, loopback, link-local or otherwise special one may be asked.

Two gates with one rule: `check_authority` looks at the address as written (literal IPs in every notation), and the
downloader asks `address_allowed` for the IP of each connection it is about to make, so that a name
that changes its state between check and use (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from tasks.domain.failures import ErrorClass, FetchError

# An IPv4 address hides in the last 32 bits of these (RFC 6052; RFC 4291, 2.5.5.1).
_CARRIES_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")


@lru_cache(maxsize=4096)
def check_authority(authority: str, allow_loopback: bool) -> None:
    """Let the host of a sendable address pass, or say why not. Names are not resolved here.

    Args:
        authority: its host and port (`tasks.domain.address.authority_of`).
        allow_loopback: true only towards the lab.

    Raises:
        FetchError: ADDRESS_REFUSED.
    """
    host = authority[1 : authority.index("]")] if authority.startswith("[") else authority.partition(":")[0]
    ip = _literal(host.rstrip("."))
    if ip is not None and not address_allowed(ip, allow_loopback):
        raise FetchError(ErrorClass.ADDRESS_REFUSED, f"{host} is no public address")


def address_allowed(ip: str, allow_loopback: bool) -> bool:
    """True for a public unicast address, and for loopback where that is allowed.

    IPv6 addresses that carry an IPv4 one (mapped, 6to4, Teredo, NAT64) are judged as what they reach.
    """
    try:
        address = ip_address(ip.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        address = _carried(address)
    if address.is_loopback:
        return allow_loopback
    if isinstance(address, IPv6Address) and (address.is_site_local or address in _LOCAL_NAT64):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _literal(host: str) -> str | None:
    """The IP a host is written as, an unusable word for a notation nobody honest uses, None for a name."""
    if ":" in host:
        return host
    try:
        packed = socket.inet_aton(host)
    except OSError:
        return None
    # inet_aton also reads 2130706433, 0x7f.1 and 0177.0.0.1; other parsers differ, so these don't pass.
    return host if socket.inet_ntoa(packed) == host else "odd notation"


def _carried(address: IPv6Address) -> IPv4Address | IPv6Address:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if not address.is_loopback and any(address in network for network in _CARRIES_IPV4):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
