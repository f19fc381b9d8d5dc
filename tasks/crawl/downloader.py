"""One node's way to the web: requests in, whole answers or one typed error out.

The way of a request: address made sendable -> guard -> caller's hook (robots, send time) -> connection from
the node's own source address -> headers -> body within limits -> status. A redirect starts again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from socket import AF_INET, AF_UNSPEC, AddressFamily
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from tasks.crawl.address import authority_of, joined, sendable
from tasks.crawl.fetch_errors import typed
from tasks.crawl.guard import check_authority
from tasks.crawl.inflate import ACCEPT_ENCODING, body_for
from tasks.crawl.model import ErrorClass, FetchError, Response
from tasks.crawl.resolver import GuardedResolver

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DNS_CACHE_S = 300
_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

BeforeRequest = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The most an answer may be.

    Attributes:
        body_bytes: of a body as sent.
        inflated_bytes: of a body once decompressed.
        ratio: of the two (beyond 256 KiB).
        header_bytes: of one header line; there may be 128 of them.
        redirects: followed for one address.
        idle_s: between two pieces of an answer, and for a connection to be made.
    """

    body_bytes: int = 5_000_000
    inflated_bytes: int = 20_000_000
    ratio: float = 100.0
    header_bytes: int = 16_384
    redirects: int = 5
    idle_s: float = 15.0


class Downloader:
    """Fetches pages for one node; use it as an async context manager, in one event loop.

    Args:
        user_agent: sent with every request.
        clock: aware time, to read a Retry-After that is a date.
        local_address: source address the node connects from; None: the system's choice.
        lab: address and port of the lab. Every host is then asked there, over plain HTTP with its own Host
            header, and loopback addresses are allowed; None: the real web.
        limits: the most an answer may be.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        clock: Callable[[], datetime],
        local_address: str | None = None,
        lab: tuple[str, int] | None = None,
        limits: FetchLimits | None = None,
    ) -> None:
        self._user_agent = user_agent
        self._clock = clock
        self._local_address = local_address
        self._lab = lab
        self._lab_origin = f"http://{lab[0]}:{lab[1]}" if lab else ""
        self._limits = limits or FetchLimits()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        idle_s = self._limits.idle_s
        self._session = aiohttp.ClientSession(
            connector=self._connector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": self._user_agent,
                "Accept": _ACCEPT,
                "Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5",
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=idle_s, sock_read=idle_s),
            auto_decompress=False,
            requote_redirect_url=False,
            max_line_size=self._limits.header_bytes,
            max_field_size=self._limits.header_bytes,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def fetch(
        self,
        url: str,
        *,
        timeout_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
        before_request: BeforeRequest | None = None,
    ) -> Response:
        """Fetch one page, through its redirects.

        Args:
            url: address; made sendable first (see `tasks.crawl.address`).
            timeout_s: for all requests of this page together; time spent in ``before_request`` doesn't count.
            headers: in addition to the node's own.
            before_request: called with each address about to be asked, the redirected ones too. A FetchError
                it raises ends the fetch.

        Returns:
            The answer with its 2xx status; its URL is the last one asked.

        Raises:
            FetchError: anything else, with its class; with the answer where its status is the trouble (its
                body is empty if that broke off).
        """
        url = sendable(url)
        asked: set[str] = set()
        spent_s = 0.0
        while True:
            if url in asked or len(asked) > self._limits.redirects:
                raise FetchError(ErrorClass.REDIRECTS, f"{len(asked)} redirects, the last one to {url}")
            asked.add(url)
            check_authority(authority_of(url), self._lab is not None)
            if before_request is not None:
                await before_request(url)
            answer = await self._ask(url, timeout_s, spent_s, headers)
            spent_s = answer.elapsed_s
            if answer.status in _REDIRECTS and "location" in answer.headers:
                url = joined(url, answer.headers["location"])
                continue
            if 200 <= answer.status < 300:
                return answer
            raise self._status_error(answer)

    async def _ask(
        self, url: str, timeout_s: float, spent_s: float, headers: Mapping[str, str] | None
    ) -> Response:
        """One request and its answer, whatever its status; `elapsed_s` goes on from ``spent_s``."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(timeout_s - spent_s):
                async with self._request(url, headers or {}) as answer:
                    lowered = _lower_names(answer.headers)
                    body = await self._read(answer, lowered)
        except FetchError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise typed(error, url, timeout_s) from error
        return Response(url, answer.status, lowered, body, spent_s + loop.time() - started)

    def _request(
        self, url: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        target = url
        if self._lab_origin:
            authority = authority_of(url)
            headers = {**headers, "Host": authority}
            target = self._lab_origin + url[url.index("://") + 3 + len(authority) :]
        # encoded: the bytes of the address go out as they are.
        return self._open().get(URL(target, encoded=True), headers=headers, allow_redirects=False)

    async def _read(self, answer: aiohttp.ClientResponse, headers: Mapping[str, str]) -> bytes:
        """The body, decompressed. That of a redirect is not read; that of an error is read if it can be."""
        if answer.status in _REDIRECTS:
            return b""
        try:
            return await self._read_body(answer, headers)
        except (FetchError, aiohttp.ClientPayloadError):
            # The status alone tells more than a body that broke.
            if answer.status < 400:
                raise
            answer.close()
            return b""

    async def _read_body(self, answer: aiohttp.ClientResponse, headers: Mapping[str, str]) -> bytes:
        limits = self._limits
        if (announced := answer.content_length or 0) > limits.body_bytes:
            raise FetchError(
                ErrorClass.TOO_LARGE, f"announces {announced} bytes, {limits.body_bytes} are allowed"
            )
        body = body_for(
            headers.get("content-encoding", ""), limits.body_bytes, limits.inflated_bytes, limits.ratio
        )
        while data := await answer.content.readany():
            body.feed(data)
        return body.finish()

    def _status_error(self, answer: Response) -> FetchError:
        error = _class_of(answer.status)
        wait_s = retry_after_s(answer.headers.get("retry-after", ""), self._clock())
        return FetchError(error, f"status {answer.status}", retry_after_s=wait_s, response=answer)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the downloader is not open: use `async with`")
        return self._session

    def _connector(self) -> aiohttp.TCPConnector:
        family: AddressFamily = AF_UNSPEC
        if self._local_address is not None and ip_address(self._local_address).version == 4:
            family = AF_INET
        return aiohttp.TCPConnector(
            # How many requests run at once is the caller's decision: its slots and send times.
            limit=0,
            family=family,
            local_addr=(self._local_address, 0) if self._local_address else None,
            resolver=GuardedResolver(),
            ttl_dns_cache=_DNS_CACHE_S,
        )


def retry_after_s(value: str, now: datetime) -> float | None:
    """Seconds a Retry-After header asks to wait (RFC 9110, 10.2.3), never negative; None for no header."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (TypeError, ValueError, OverflowError):  # no date, or one without a zone
        return None


def _class_of(status: int) -> ErrorClass:
    if status in (404, 410):
        return ErrorClass.NOT_FOUND
    if status >= 500:
        return ErrorClass.SERVER_ERROR
    if status == 429:
        return ErrorClass.RATE_LIMITED
    if status in (401, 403, 432):
        return ErrorClass.FORBIDDEN
    return ErrorClass.OTHER_STATUS


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    lowered: dict[str, str] = {}
    for name, value in headers.items():
        name = name.lower()
        lowered[name] = f"{lowered[name]}, {value}" if name in lowered else value
    return lowered
