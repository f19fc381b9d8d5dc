"""Asking one page as a person would with a browser, for `sites try` and `failed show --refetch`.

With requests, under the crawl's own guard: no private address, odd scheme or odd port of a name, at each redirect, and
once more for the address really connected to.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from splitter.errors import ReviewloopError
from tasks.domain.address import authority_of, joined, sendable
from tasks.domain.crawl import ErrorClass, FetchError
from tasks.fetching.guard import address_allowed, check_url
from tasks.worker.settings import CrawlSettings

_MOST_BYTES = 5_000_000
_MOST_REDIRECTS = 5
_PIECE = 65_536
_REDIRECTS = (301, 302, 303, 307, 308)


class AskFailed(ReviewloopError):
    """The page could not be had: refused by the guard, nobody answers, too large."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came.

    Attributes:
        url: the last one asked.
        headers: lower-case names.
        redirects: addresses asked before it, in order.
        elapsed_s: for all of them.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[str, ...]
    elapsed_s: float


def _trusts_nobody(_url: str) -> bool:
    return False


def ask(
    url: str,
    settings: CrawlSettings,
    *,
    headers: Mapping[str, str] | None = None,
    trusts: Callable[[str], bool] = _trusts_nobody,
) -> Answer:
    """Ask for a page, through its redirects; any status is an answer.

    Args:
        headers: sent besides our own, to the host of `url` only.
        trusts: tells of an address whether its host may be on a private address (`HostBook.may_be_private`).

    Raises:
        AskFailed: there is none.
    """
    began_s = time.monotonic()
    asked: list[str] = []
    try:
        with _session(settings) as guarded, _session(settings, guard=False) as plain:
            url = sendable(url)
            first = authority_of(url)
            while True:
                session = plain if trusts(url) else guarded
                if session is guarded:
                    check_url(url, allow_loopback=settings.lab is not None)
                extra = headers if authority_of(url) == first else None
                response, body = _one(session, url, settings, extra or {})
                if response.status_code not in _REDIRECTS or "location" not in response.headers:
                    break
                asked.append(url)
                url = joined(url, response.headers["location"])
                if url in asked or len(asked) > _MOST_REDIRECTS:
                    raise FetchError(ErrorClass.REDIRECTS, f"{len(asked)} redirects, the last one to {url}")
    except FetchError as error:
        raise AskFailed(str(error)) from error
    except (requests.RequestException, OSError) as error:
        raise AskFailed(f"{url}: {_innermost(error)}") from error
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(url, response.status_code, headers, body, tuple(asked), time.monotonic() - began_s)


def _session(settings: CrawlSettings, *, guard: bool = True) -> requests.Session:
    session = requests.Session()
    # A proxy from the environment would connect where the guard cannot look.
    session.trust_env = False
    session.headers["User-Agent"] = settings.user_agent
    if guard and settings.lab is None:
        for scheme in ("http://", "https://"):
            session.mount(scheme, _GuardedAdapter())
    return session


def _one(
    session: requests.Session, url: str, settings: CrawlSettings, extra: Mapping[str, str]
) -> tuple[requests.Response, bytes]:
    target, headers = url, dict(extra)
    if settings.lab is not None:
        authority = authority_of(url)
        headers["Host"] = authority
        rest = url[url.index("://") + 3 + len(authority) :]
        target = f"http://{settings.lab[0]}:{settings.lab[1]}{rest or '/'}"
    timeout_s = settings.request_timeout_s
    with session.get(
        target, headers=headers, timeout=timeout_s, allow_redirects=False, stream=True
    ) as response:
        return response, _body(response, time.monotonic() + timeout_s)


def _body(response: requests.Response, end_s: float) -> bytes:
    body = bytearray()
    for piece in response.iter_content(_PIECE):
        body += piece
        if len(body) > _MOST_BYTES:
            raise FetchError(ErrorClass.TOO_LARGE, f"more than {_MOST_BYTES:,} bytes")
        if time.monotonic() > end_s:
            raise FetchError(ErrorClass.TIMEOUT, "the body takes too long")
    return bytes(body)


def _innermost(error: BaseException) -> str:
    """The cause under the layers of requests and urllib3, which repeat each other."""
    while (cause := error.__context__ or error.__cause__) is not None:
        error = cause
    return str(error) or type(error).__name__


class _AddressRefused(OSError):
    """A name leads to an address that may not be asked."""


class _Guarded:
    """Connections to public addresses only: looked up first, and looked at again once connected."""

    def _new_conn(self) -> socket.socket:
        host: str = self._dns_host  # type: ignore[attr-defined]
        port: int = self.port  # type: ignore[attr-defined]
        for *_, found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            _refuse_special(host, str(found[0]))
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        try:
            _refuse_special(host, str(made.getpeername()[0]))
        except OSError:
            made.close()
            raise
        return made


def _refuse_special(host: str, address: str) -> None:
    if not address_allowed(address, allow_loopback=False):
        raise _AddressRefused(f"{host} leads to {address}, which is no public address")


class _GuardedHTTP(_Guarded, HTTPConnection):
    pass


class _GuardedHTTPS(_Guarded, HTTPSConnection):
    pass


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _GuardedHTTP


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _GuardedHTTPS


class _GuardedAdapter(HTTPAdapter):
    """Requests over guarded connections."""

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        """As the base class, with our kinds of connection."""
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
