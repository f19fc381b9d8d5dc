"""Requests of one node: a URL in, a whole response or one typed error out.

The steps of a request: address made sendable -> guard -> caller's hook (robots, permit) -> connection from
the node's own source address -> headers -> body within limits -> status. A redirect starts again.

libcurl carries the requests (`tasks.fetching.multi`). Names are looked up in its threads, off the event loop, and kept
for 300 s; the guard judges the address of each connection as it is made, so a look-up that changes in between
does no harm. A request is sent once. Only if a reused connection turns out dead before a byte of the answer came is it
sent once more, as HTTP allows for a GET (RFC 9112, 9.3.1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Self

import pycurl
from splitter.errors import Message

from tasks.domain.address import authority_of, resolve_reference, sendable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.guard import check_authority
from tasks.fetching.inflate import ACCEPT_ENCODING, inflate_body, join_chunks
from tasks.fetching.multi import Multi
from tasks.fetching.responses import headers_ended, headers_of, status_error, transfer_error
from tasks.fetching.transfer import MAX_SENT, Transfer, Wire

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONDITIONS = frozenset({"if-none-match", "if-modified-since"})
# Their names are resolved by the proxy: with the other SOCKS schemes libcurl would do it, past the guard.
_PROXY_SCHEMES = ("http://", "https://", "socks5h://")
_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_LINE_BREAKS = frozenset("\r\n\0")

BeforeRequest = Callable[[str], Awaitable[Mapping[str, str] | None]]
"""Called with each URL before it is requested; returns headers for that request alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The most an answer may be.

    Attributes:
        body_bytes: of a body as sent.
        inflated_bytes: of a body once decompressed.
        ratio: of the two (beyond 256 KiB).
        header_bytes: of one header line; there may be 128 of them in all.
        redirects: followed for one address.
        idle_s: without a byte, from the first step (name, connection) on; noticed up to an eighth later.
    """

    body_bytes: int = 5_000_000
    inflated_bytes: int = 20_000_000
    ratio: float = 100.0
    header_bytes: int = 16_384
    redirects: int = 5
    idle_s: float = 15.0


Trusts = Callable[[str], bool]
Note = Callable[[str, int, int, float, str], None]
"""Called after each request: URL, status (0: none), bytes of the body, seconds, error class (empty: none)."""


def nothing(_url: str) -> bool:
    """Trusts no address to be private."""
    return False


class Downloader:
    """Fetches pages for one node; use it as an async context manager, in one event loop.

    Args:
        user_agent: sent with every request.
        clock: aware time, to read a Retry-After that is a date.
        local_address: source address the node connects from; None: the system's choice.
        lab: address and port of the lab. Every host is then asked there, over plain HTTP with its own Host
            header, and loopback addresses are allowed; None: the real web.
        limits: the most an answer may be.
        proxy: the node's proxy, ``http://``, ``https://`` or ``socks5h://`` (with user and password if it wants
            them); it may be on a private address, for the operator chose it. It resolves the names of the hosts,
            so only literal addresses are guarded here, and the proxy has to guard the rest. None:
                no proxy, whatever the environment contains.
        private: true for a URL whose host may be on a private address according to the catalog. Such a host is only
                asked for URLs that the request trusts (`fetch`), because a connection to it may be open already.

    Raises:
        ValueError: a proxy of another scheme.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        clock: Callable[[], datetime],
        local_address: str | None = None,
        lab: tuple[str, int] | None = None,
        limits: FetchLimits | None = None,
        proxy: str | None = None,
        private: Trusts = nothing,
    ) -> None:
        if proxy is not None and not proxy.startswith(_PROXY_SCHEMES):
            raise ValueError(f"a proxy's address starts with one of {', '.join(_PROXY_SCHEMES)}")
        self._clock = clock
        self._private = private
        self._in_lab = lab is not None
        self._lab_origin = f"http://{lab[0]}:{lab[1]}" if lab else ""
        self._limits = limits or FetchLimits()
        # Over such a proxy a plain request names the whole address (RFC 9112, 3.2.2); over the others it is tunnelled.
        self._asks_proxy = proxy is not None and proxy.startswith("http")
        self._wire = Wire(
            self._limits.body_bytes,
            self._limits.header_bytes,
            local_address,
            proxy,
            guarded=lab is None and proxy is None,
        )
        self._own_headers = {
            "user-agent": f"User-Agent: {user_agent}".encode(),
            "accept": f"Accept: {_ACCEPT}".encode(),
            "accept-language": b"Accept-Language: zh-CN,zh;q=0.9,en;q=0.5",
            "accept-encoding": f"Accept-Encoding: {ACCEPT_ENCODING}".encode(),
        }
        self._own_lines = list(self._own_headers.values())
        self._multi: Multi | None = None
        # Every handle ever made: connections remember theirs, so handles live until all connections are closed.
        self._handles: list[pycurl.Curl] = []
        self._free: list[Transfer] = []

    async def __aenter__(self) -> Self:
        self._multi = Multi(self._limits.idle_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        multi, self._multi = self._multi, None
        if multi is None:
            return
        await multi.close()
        self._free.clear()
        for handle in self._handles:
            handle.close()
        self._handles.clear()

    async def fetch(
        self,
        url: str,
        *,
        timeout_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
        before_request: BeforeRequest | None = None,
        follow: bool = True,
        trusts: Trusts = nothing,
        note: Note | None = None,
    ) -> Response:
        """Fetch one page, through its redirects.

        Args:
            url: address; made sendable first (see `tasks.domain.address`).
            timeout_s: for all requests of this page; time spent in ``before_request`` doesn't count.
            headers: in addition to the node's own, or in place of them; redirects to another host go without.
            before_request: called with each address about to be asked, redirects included. It returns
                    headers for this address alone (cookies, tokens). A FetchError it raises ends the fetch.
            follow: False: a redirect is an answer like any other.
            trusts: true for a URL that this request may ask for on a private address. It is also asked of redirects.
            note: called after each request, those to redirects too.

        Returns:
            The answer with its 2xx status; its URL is the last one asked. A conditional request (If-None-Match or
            If-Modified-Since among the headers) may also be answered with 304 and no body.

        Raises:
            FetchError: anything else, with its class; with the answer if its status is the trouble (its
                body is empty if that broke off).
            ValueError: a header with a line break in it.
        """
        url = sendable(url)
        asked: set[str] = set()
        first = authority_of(url)
        spent_s = 0.0
        while True:
            if url in asked or len(asked) > self._limits.redirects:
                raise FetchError(
                    ErrorClass.REDIRECTS,
                    Message("{n} redirects, the last one to {url}", n=len(asked), url=url),
                )
            asked.add(url)
            authority = authority_of(url)
            trusted = trusts(url)
            if not trusted:
                check_authority(authority, self._in_lab)
                if self._private(url) and not self._in_lab:
                    raise FetchError(
                        ErrorClass.ADDRESS_REFUSED,
                        Message(
                            "{authority} is private, and not asked for what others link to",
                            authority=authority,
                        ),
                    )
            given = headers if authority == first else None
            if before_request is not None and (more := await before_request(url)):
                given = {**(given or {}), **more}
            answer = await self._report(
                self._ask(url, authority, timeout_s, spent_s, given, trusted=trusted), url, spent_s, note
            )
            spent_s = answer.elapsed_s
            if 200 <= answer.status < 300:
                return answer
            if answer.status in _REDIRECTS and "location" in answer.headers:
                if not follow:
                    return answer
                url = resolve_reference(url, answer.headers["location"])
                continue
            if answer.status == 304 and given and not _CONDITIONS.isdisjoint(map(str.lower, given)):
                return answer
            raise status_error(answer, self._clock())

    async def _report(
        self, asking: Coroutine[None, None, Response], url: str, spent_s: float, note: Note | None
    ) -> Response:
        """Await the answer of a request, and report it to `note`."""
        if note is None or self._multi is None:
            return await asking
        began_s = self._multi.time()
        try:
            answer = await asking
        except FetchError as error:
            note(url, 0, 0, self._multi.time() - began_s, error.error)
            raise
        note(url, answer.status, len(answer.body), answer.elapsed_s - spent_s, "")
        return answer

    async def _ask(
        self,
        url: str,
        authority: str,
        timeout_s: float,
        spent_s: float,
        headers: Mapping[str, str] | None,
        *,
        trusted: bool,
    ) -> Response:
        """Send one request and return its answer, whatever its status. `elapsed_s` continues from ``spent_s``."""
        multi = self._multi
        if multi is None:
            raise RuntimeError("the downloader is not open: use `async with`")
        if spent_s >= timeout_s:
            raise FetchError(
                ErrorClass.TIMEOUT,
                Message("the redirects took all of the {timeout_s:g} s", timeout_s=timeout_s),
            )
        origin, target, lines = self._connection_target(url, authority)
        if headers:
            lines = self._lines(authority, headers)
        transfer = self._free.pop() if self._free else self._make_transfer()
        started = multi.time()
        try:
            transfer.prepare(origin, target, lines, timeout_s - spent_s, trusted=trusted)
            code, message = await multi.perform(transfer)
            elapsed_s = spent_s + multi.time() - started
            if code:
                self._check_broken(transfer, url, code, message, timeout_s)
            return self._answer(transfer, url, elapsed_s, whole=not code)
        finally:
            transfer.clear()
            self._free.append(transfer)

    def _connection_target(self, url: str, authority: str) -> tuple[str, str, list[bytes]]:
        """Return the address to connect to, the target to ask for, and the header lines."""
        cut = url.index("://") + 3 + len(authority)
        target = url[cut:] if url.startswith("/", cut) else f"/{url[cut:]}"
        if self._in_lab:
            return self._lab_origin, target, [f"Host: {authority}".encode(), *self._own_lines]
        if self._asks_proxy and url.startswith("http://"):
            target = url[:cut] + target
        return url[:cut], target, self._own_lines

    def _answer(self, transfer: Transfer, url: str, elapsed_s: float, *, whole: bool) -> Response:
        status = transfer.status()
        if not headers_ended(transfer.head_lines):
            raise FetchError(
                ErrorClass.CUT_OFF, Message("{host} hung up within its headers", host=authority_of(url))
            )
        headers = headers_of(transfer.head_lines)
        body = transfer.body() if whole and status not in _REDIRECTS else b""
        try:
            body = self._decode(body, headers)
        except FetchError:
            # The status alone is more precise than a broken body.
            if status < 400:
                raise
            body = b""
        return Response(
            url=url,
            status=status,
            headers=headers,
            body=body,
            elapsed_s=elapsed_s,
            first_byte_s=transfer.first_byte_s(),
        )

    def _decode(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        limits = self._limits
        if body and "transfer-encoding" in headers:
            body = join_chunks(body, headers["transfer-encoding"])
        if body and "content-encoding" in headers:
            coding = headers["content-encoding"]
            body = inflate_body(body, coding, max_bytes=limits.inflated_bytes, max_ratio=limits.ratio)
        return body

    def _check_broken(self, transfer: Transfer, url: str, code: int, message: str, timeout_s: float) -> None:
        """Raise the error of a transfer that broke, unless its status suffices without a body."""
        host = authority_of(url)
        if transfer.refused and not transfer.connected:
            raise FetchError(
                ErrorClass.ADDRESS_REFUSED,
                Message(
                    "{host} leads to {refused}, which is no public address",
                    host=host,
                    refused=transfer.refused,
                ),
            )
        if transfer.overfull:
            raise FetchError(
                ErrorClass.TOO_LARGE,
                Message(
                    "the headers of {host} are over the limit: {n} lines, the longest of {longest} bytes",
                    host=host,
                    n=len(transfer.head_lines),
                    longest=max(map(len, transfer.head_lines)),
                ),
            )
        lines = transfer.head_lines
        if code != pycurl.E_OPERATION_TIMEDOUT and headers_ended(lines):
            status = transfer.status()
            if status in _REDIRECTS or status >= 400:
                return
        if transfer.sent > MAX_SENT:
            raise FetchError(
                ErrorClass.CONNECT,
                Message(
                    "{host} closed the connection without an answer, {most} times", host=host, most=MAX_SENT
                ),
            )
        raise transfer_error(code, message, host, timeout_s, begun=bool(lines))

    def _lines(self, authority: str, headers: Mapping[str, str]) -> list[bytes]:
        lines = dict(self._own_headers)
        if self._in_lab:
            lines = {"host": f"Host: {authority}".encode(), **lines}
        for name, value in headers.items():
            if not _LINE_BREAKS.isdisjoint(name + value):
                raise ValueError(f"the header {name!r} has a line break in it")
            # libcurl takes "Name:" for a wish to leave the header out.
            line = f"{name}: {value}" if value.strip() else f"{name};"
            lines[name.lower()] = line.encode("utf-8", "surrogateescape")
        return list(lines.values())

    def _make_transfer(self) -> Transfer:
        transfer = Transfer(self._wire)
        self._handles.append(transfer.curl)
        return transfer
