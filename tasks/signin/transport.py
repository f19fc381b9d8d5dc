"""Connections for signing in, through requests, under the crawl's guard.

Only public addresses, looked at again once connected; in lab mode every host is the lab instead. Bodies and the
time of a whole sign-in are limited; cookies follow the strict rules of RFC 6265.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Timer
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.cookies import extract_cookies_to_jar, get_cookie_header
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tasks.domain.address import authority_of, sendable
from tasks.domain.crawl import ErrorClass, FetchError
from tasks.fetching.guard import address_allowed, check_url

_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class WayOut:
    """How a process signs in.

    Attributes:
        user_agent: sent with every request.
        local_address: source address; None: the system's choice.
        lab: address and port every host is sent to; None: the real web.
        timeout_s: for a whole sign-in, all its requests together.
        body_bytes: of one answer, decompressed.
    """

    user_agent: str
    local_address: str | None = None
    lab: tuple[str, int] | None = None
    timeout_s: float = 30.0
    body_bytes: int = 2_000_000


class GuardedAdapter(HTTPAdapter):
    """Requests over connections that may be made; use it for one sign-in, and close it.

    Attributes:
        jar: cookies of the sign-in. The session's own jar would send a host's cookies to its subdomains.
    """

    def __init__(self, way: WayOut) -> None:
        self._way = way
        self._end_s = time.monotonic() + way.timeout_s
        self._sockets: list[socket.socket] = []
        self.jar = CookieJar(_strict())
        super().__init__()
        # Timeouts of sockets begin anew with every byte; a drip of headers would hold the thread for ever.
        self._watch = Timer(way.timeout_s, self._break_off)
        self._watch.daemon = True
        self._watch.start()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        """As the base class, with our kinds of connection and source address."""
        if self._way.local_address is not None:
            options["source_address"] = (self._way.local_address, 0)
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **options)
        self.poolmanager.pool_classes_by_scheme = _pools(self)

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        """Ask once; the answer has its whole body.

        Raises:
            FetchError: refused by the guard, too large, or too late.
            requests.RequestException, OSError: no whole answer.
        """
        url = sendable(request.url or "")
        check_url(url, allow_loopback=self._way.lab is not None)
        request.headers.pop("Cookie", None)
        if cookies := get_cookie_header(self.jar, request):  # type: ignore[no-untyped-call]
            request.headers["Cookie"] = cookies
        response = super().send(self._towards_lab(request, url), stream=True, timeout=self._remaining_s())
        extract_cookies_to_jar(self.jar, request, response.raw)  # type: ignore[no-untyped-call]
        response.url, response.request = url, request
        self._read(response)
        self._remaining_s()  # headers that were broken off look like an answer
        return response

    def opened(self, host: str, made: socket.socket) -> None:
        """Look at a connection before anything is sent on it. Raises OSError for one that may not be."""
        if self._way.lab is None:
            refuse_special(host, str(made.getpeername()[0]))
        # A copy: the original is given away to TLS.
        self._sockets.append(made.dup())

    def looked_up(self, host: str, port: int) -> None:
        """Look at a host's addresses before it is connected to. Raises OSError for one that may not be."""
        if self._way.lab is None:
            for *_, found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                refuse_special(host, str(found[0]))

    def close(self) -> None:
        """Close every connection."""
        self._watch.cancel()
        super().close()
        while self._sockets:
            self._sockets.pop().close()

    def _remaining_s(self) -> float:
        """Time left for this sign-in. Raises FetchError where there is none."""
        remaining_s = self._end_s - time.monotonic()
        if remaining_s <= 0:
            raise FetchError(ErrorClass.TIMEOUT, f"signing in takes longer than {self._way.timeout_s:g} s")
        return remaining_s

    def _towards_lab(self, request: requests.PreparedRequest, url: str) -> requests.PreparedRequest:
        if self._way.lab is None:
            return request
        host, port = self._way.lab
        authority = authority_of(url)
        rest = url[url.index("://") + 3 + len(authority) :]
        sent = request.copy()
        sent.url = f"http://{host}:{port}{rest if rest.startswith('/') else '/' + rest}"
        sent.headers["Host"] = authority
        return sent

    def _read(self, response: requests.Response) -> None:
        body = bytearray()
        with response:
            for piece in response.iter_content(_PIECE):
                body += piece
                if len(body) > self._way.body_bytes:
                    raise FetchError(ErrorClass.TOO_LARGE, f"more than {self._way.body_bytes:,} bytes")
        response._content = bytes(body)

    def _break_off(self) -> None:
        for made in list(self._sockets):
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)


def refuse_special(host: str, address: str) -> None:
    """Raise AddressRefused for an address that is not public."""
    if not address_allowed(address, allow_loopback=False):
        raise AddressRefused(f"{host} leads to {address}, which is no public address")


class AddressRefused(OSError):
    """A name leads to an address that may not be asked."""


class _Watched:
    """A connection whose adapter looks at it before it is used."""

    def __init__(self, *arguments: Any, adapter: GuardedAdapter, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._adapter = adapter

    def _new_conn(self) -> socket.socket:
        host: str = self._dns_host  # type: ignore[attr-defined]
        self._adapter.looked_up(host, self.port)  # type: ignore[attr-defined]
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        try:
            self._adapter.opened(host, made)
        except OSError:
            made.close()
            raise
        return made


class _WatchedHTTP(_Watched, HTTPConnection):
    pass


class _WatchedHTTPS(_Watched, HTTPSConnection):
    pass


def _pools(adapter: GuardedAdapter) -> dict[str, Any]:
    """Pools by scheme whose connections the adapter looks at."""

    class HTTPPool(HTTPConnectionPool):
        ConnectionCls: Any = staticmethod(partial(_WatchedHTTP, adapter=adapter))

    class HTTPSPool(HTTPSConnectionPool):
        ConnectionCls: Any = staticmethod(partial(_WatchedHTTPS, adapter=adapter))

    return {"http": HTTPPool, "https": HTTPSPool}


def _strict() -> DefaultCookiePolicy:
    return DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)


def _nowhere(_: requests.Response) -> None:
    return


def session_over(adapter: GuardedAdapter, user_agent: str, session: requests.Session) -> requests.Session:
    """A session whose every request goes through the adapter, its cookies included."""
    # A proxy or .netrc of the environment would go where the guard cannot look.
    session.trust_env = False
    # Redirects are the caller's: a password or a code must not be sent on.
    session.get_redirect_target = _nowhere  # type: ignore[assignment, method-assign]
    session.headers.update({"User-Agent": user_agent, "Accept-Encoding": "identity"})
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session
