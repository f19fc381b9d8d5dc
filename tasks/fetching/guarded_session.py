"""Requests sessions under the crawl's guard: for signing in, and for a page that a person asks for.

Only public addresses, judged when a name is looked up and once more when it is connected to; in lab mode every host is
the lab instead. The body of an answer and the time of a whole session are limited; cookies follow the strict
rules of RFC 6265.
"""

from __future__ import annotations

import io
import socket
import time
from contextlib import suppress
from functools import partial
from http.client import HTTPResponse
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Timer
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from requests.cookies import extract_cookies_to_jar, get_cookie_header
from splitter.errors import Message
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tasks.domain.address import authority_of, sendable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.public_ip import address_allowed
from tasks.fetching.guard import SessionSettings, check_authority

_PIECE_BYTES = 65_536
_HEADER_BYTES = 65_536
_AnySession = TypeVar("_AnySession", bound=requests.Session)


class GuardedAdapter(HTTPAdapter):
    """Sends requests over connections to allowed addresses; use it for one session in one thread, and close it.

    Attributes:
        jar: cookies of the session. The session's own jar would send a host's cookies to its subdomains.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._guarded = settings.lab is None
        self._end_s = time.monotonic() + settings.timeout_s
        self._sockets: list[socket.socket] = []
        self.jar = CookieJar(DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain))
        super().__init__()
        # Timeouts of sockets restart with every byte: a drip of headers would block the thread for ever.
        self._watch = Timer(settings.timeout_s, self._break_off)
        self._watch.daemon = True
        self._watch.start()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        """Make the pool like the base class, with guarded connections and the source address."""
        if self._settings.local_address is not None:
            options["source_address"] = (self._settings.local_address, 0)
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, **options)
        self.poolmanager.pool_classes_by_scheme = _pools(self)

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        """Send one request; the response has its whole body.

        Raises:
            FetchError: the guard refused it, or it is too large or too slow.
            requests.RequestException, OSError: no whole answer.
        """
        settings = self._settings
        url = sendable(request.url or "")
        trusted = settings.trusts(url)
        self._guarded = settings.lab is None and not trusted
        if not trusted:
            check_authority(authority_of(url), allow_loopback=settings.lab is not None)
        if cookies := get_cookie_header(self.jar, request):  # type: ignore[no-untyped-call]
            request.headers["Cookie"] = cookies
        response = super().send(self._towards_lab(request, url), stream=True, timeout=self._remaining_s())
        extract_cookies_to_jar(self.jar, request, response.raw)  # type: ignore[no-untyped-call]
        response.url, response.request = url, request
        # requests reads headers as Latin-1; the crawl keeps their bytes (`responses.headers_of`).
        for name, value in response.headers.items():
            response.headers[name] = value.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
        self._read(response)
        self._remaining_s()  # headers that were broken off look like an answer
        return response

    def check_host(self, host: str, port: int) -> None:
        """Judge a host's addresses before it is connected to. Raises OSError for one that is not allowed."""
        if self._guarded:
            for *_, found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                _refuse_special(host, str(found[0]))

    def check_connection(self, host: str, made: socket.socket) -> None:
        """Judge a connection before anything is sent on it. Raises OSError for one that is not allowed."""
        if self._guarded:
            _refuse_special(host, str(made.getpeername()[0]))
        # A copy: the original is given away to TLS.
        self._sockets.append(made.dup())

    def answer_bytes(self) -> int:
        """Return the most that one answer may send, headers included."""
        return self._settings.body_bytes + _HEADER_BYTES

    def close(self) -> None:
        """Close every connection."""
        self._watch.cancel()
        super().close()
        while self._sockets:
            self._sockets.pop().close()

    def _remaining_s(self) -> float:
        """Return the seconds left for this session. Raises FetchError if there are none."""
        remaining_s = self._end_s - time.monotonic()
        if remaining_s <= 0:
            raise FetchError(
                ErrorClass.TIMEOUT,
                Message("it takes longer than {timeout_s:g} s", timeout_s=self._settings.timeout_s),
            )
        return remaining_s

    def _towards_lab(self, request: requests.PreparedRequest, url: str) -> requests.PreparedRequest:
        if self._settings.lab is None:
            return request
        host, port = self._settings.lab
        authority = authority_of(url)
        rest = url[url.index("://") + 3 + len(authority) :]
        sent = request.copy()
        sent.url = f"http://{host}:{port}{rest if rest.startswith('/') else '/' + rest}"
        sent.headers["Host"] = authority
        return sent

    def _read(self, response: requests.Response) -> None:
        body = bytearray()
        with response:
            for piece in response.iter_content(_PIECE_BYTES):
                body += piece
                if len(body) > self._settings.body_bytes:
                    raise FetchError(
                        ErrorClass.TOO_LARGE,
                        Message("more than {most:,} bytes", most=self._settings.body_bytes),
                    )
        response._content = bytes(body)

    def _break_off(self) -> None:
        for made in list(self._sockets):
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)


def guard_session(session: _AnySession, adapter: GuardedAdapter, user_agent: str) -> _AnySession:
    """The session (of requests, or one derived from it) with every request sent by the adapter, cookies included.

    It follows no redirects: a password or a code must not be sent on, so redirects are the caller's.
    """
    # A proxy or .netrc of the environment would go where the guard cannot look.
    session.trust_env = False
    session.get_redirect_target = lambda _: None  # type: ignore[assignment, method-assign]
    session.headers.update({"User-Agent": user_agent, "Accept-Encoding": "identity"})
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    return session


def cause_of(error: BaseException) -> str:
    """The cause under the layers of requests and urllib3, whose own messages repeat the address."""
    while (cause := error.__context__ or error.__cause__) is not None:
        error = cause
    if isinstance(error, OSError) and error.args:
        return error.strerror or str(error)
    return type(error).__name__


class AddressRefused(OSError):
    """A name leads to an address that is not allowed."""


def _refuse_special(host: str, address: str) -> None:
    if not address_allowed(address, allow_loopback=False):
        raise AddressRefused(f"{host} leads to {address}, which is no public address")


class _LimitedAnswer(io.RawIOBase):
    """Bytes of one answer as they come: chunk extensions and endless headers count like a body."""

    def __init__(self, raw: io.RawIOBase, most: int) -> None:
        self._raw = raw
        self._most = most
        self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read received bytes. Raises FetchError if they exceed the limit."""
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise FetchError(ErrorClass.TOO_LARGE, Message("more than {most:,} bytes", most=self._most))
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Judged:
    """A connection that its adapter judges before it is used, and whose answers are counted."""

    def __init__(self, *arguments: Any, adapter: GuardedAdapter, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._adapter = adapter
        self.response_class = self._limit_answer

    def _limit_answer(self, made: socket.socket, *arguments: Any, **options: Any) -> HTTPResponse:
        answer = HTTPResponse(made, *arguments, **options)
        answer.fp = io.BufferedReader(_LimitedAnswer(answer.fp.detach(), self._adapter.answer_bytes()))
        return answer

    def _new_conn(self) -> socket.socket:
        host: str = self._dns_host  # type: ignore[attr-defined]
        self._adapter.check_host(host, self.port)  # type: ignore[attr-defined]
        made: socket.socket = super()._new_conn()  # type: ignore[misc]
        try:
            self._adapter.check_connection(host, made)
        except OSError:
            made.close()
            raise
        return made


class _JudgedHTTP(_Judged, HTTPConnection):  # type: ignore[misc]
    pass


class _JudgedHTTPS(_Judged, HTTPSConnection):  # type: ignore[misc]
    pass


def _pools(adapter: GuardedAdapter) -> dict[str, Any]:
    """Pools by scheme whose connections the adapter judges."""

    class HTTPPool(HTTPConnectionPool):
        ConnectionCls: Any = staticmethod(partial(_JudgedHTTP, adapter=adapter))

    class HTTPSPool(HTTPSConnectionPool):
        ConnectionCls: Any = staticmethod(partial(_JudgedHTTPS, adapter=adapter))

    return {"http": HTTPPool, "https": HTTPSPool}
