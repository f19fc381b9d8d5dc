"""Judge whether an IP address is public unicast, by IANA's registries and not by the version of Python."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

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
"""Blocks of IANA's special-purpose address registries (RFC 6890; read in November 2026). No web host is in them.

They are listed here because versions of Python differ in the addresses that `ipaddress` calls global.
"""

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All IPv6 addresses outside it are special or not assigned (RFC 4291, 2.4)."""

_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_CARRIES_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
"""Addresses that reach the IPv4 address in their last 32 bits (RFC 4291, 2.5.5.2; RFC 6052)."""


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
