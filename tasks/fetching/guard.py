"""The guard of addresses: no private, loopback, link-local or otherwise special one may be asked.

Two gates with one rule: `check_authority` looks at the address as written (literal IPs in every notation), and the
downloader asks `address_allowed` for the IP of each connection it is about to make, so that a name
that changes its state between check and use (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.public_ip import address_allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """How a session reaches the web.

    Attributes:
        user_agent: sent with every request.
        local_address: source address; None: the system's choice.
        lab: address and port every host is sent to; None: the real web.
        timeout_s: for a whole session, all its requests.
        body_bytes: maximum size of an answer, decompressed, and of all bytes received for it except its headers.
        trusts: true for a URL whose host may be on a private address (`HostCatalog.may_be_private`).
    """

    user_agent: str
    local_address: str | None = None
    lab: tuple[str, int] | None = None
    timeout_s: float = 30.0
    body_bytes: int = 2_000_000
    trusts: Callable[[str], bool] = lambda _url: False


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
        raise FetchError(ErrorClass.ADDRESS_REFUSED, Message("{host} is no public address", host=host))


def _literal(host: str) -> str | None:
    """Return the IP that a host is written as, an unusable word for a suspect notation, None for a name."""
    if ":" in host:
        return host
    try:
        packed = socket.inet_aton(host)
    except OSError:
        return None
    # inet_aton also reads 2130706433, 0x7f.1 and 0177.0.0.1; other parsers differ, so these don't pass.
    return host if socket.inet_ntoa(packed) == host else "odd notation"
