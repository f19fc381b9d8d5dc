"""The guard of addresses: no private, loopback, link-local or otherwise special one may be asked.

Two gates with one rule: `check_authority` looks at the address as written (literal IPs in every notation), and the
downloader asks `address_allowed` for the IP of each connection it is about to make, so that a name
that changes its state between check and use (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from tasks.domain.failures import ErrorClass, FetchError

_SPECIAL_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared behind a carrier's NAT; Alibaba's metadata service (100.100.100.200)
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # Azure's host agent: not in the registry, but the same for every virtual machine
            "169.254.0.0/16",  # link-local; metadata services of clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; Oracle's metadata service (192.0.0.192)
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_SPECIAL_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID and others
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
"""Blocks of IANA's special-purpose address registries (RFC 6890; read in November 2026), none of which is the web's.

They are listed here because what `ipaddress` calls global differs between versions of Python.
"""

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All IPv6 addresses outside it are special or not assigned (RFC 4291, 2.4)."""

_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_CARRIES_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
"""Addresses that reach the IPv4 address in their last 32 bits (RFC 4291, 2.5.5.2; RFC 6052)."""


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
    """Return True for a public unicast address, and for loopback if that is allowed.

    An IPv6 address that carries an IPv4 one (mapped, NAT64) is judged as the one that it reaches.
    """
    try:
        address = ip_address(ip.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and any(address in network for network in _CARRIES_IPV4):
        address = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _LOOPBACK):
        return allow_loopback
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_IPV6)


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
