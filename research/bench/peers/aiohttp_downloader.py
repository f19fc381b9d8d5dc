"""The downloader as it was before libcurl: the same contract and limits over aiohttp, towards the lab only.

Kept to be measured against, alone and in the whole pipeline. What differs from the downloader is the carrier: who opens
connections, sends and reads. Addresses, guard, redirects, decompression, and the classes of statuses are inherited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.downloader import Downloader, FetchLimits
from tasks.fetching.inflate import ACCEPT_ENCODING, inflated

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class AiohttpDownloader(Downloader):
    """`Downloader` carried by aiohttp. Args as there; the lab is a must (no guard looks at connections here)."""

    def __init__(
        self,
        *,
        user_agent: str,
        clock: Callable[[], datetime],
        lab: tuple[str, int],
        local_address: str | None = None,
        limits: FetchLimits | None = None,
        proxy: str | None = None,
        private: Callable[[str], bool] = lambda _url: False,
    ) -> None:
        if proxy is not None:
            raise ValueError("the downloader over aiohttp knows the lab only: no proxy")
        super().__init__(
            user_agent=user_agent,
            clock=clock,
            lab=lab,
            local_address=local_address,
            limits=limits,
            private=private,
        )
        self._agent = user_agent
        self._source = local_address
        self._at = f"http://{lab[0]}:{lab[1]}"
        self._most = limits or FetchLimits()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        idle_s = self._most.idle_s
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, local_addr=(self._source, 0) if self._source else None, ttl_dns_cache=300
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "User-Agent": self._agent,
                "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                "Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5",
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=idle_s, sock_read=idle_s),
            auto_decompress=False,
            requote_redirect_url=False,
            max_line_size=self._most.header_bytes,
            max_field_size=self._most.header_bytes,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(
        self,
        url: str,
        authority: str,
        timeout_s: float,
        spent_s: float,
        headers: Mapping[str, str] | None,
        *,
        trusted: bool = False,  # noqa: ARG002 - every host is asked at the lab
    ) -> Response:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(timeout_s - spent_s):
                async with self._request(url, authority, headers or {}) as answer:
                    lowered = _lower_names(answer.headers)
                    body = await self._read(answer, lowered)
        except FetchError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _typed(error, authority) from error
        return Response(
            url=url,
            status=answer.status,
            headers=lowered,
            body=body,
            elapsed_s=spent_s + loop.time() - started,
        )

    def _request(
        self, url: str, authority: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("the downloader is not open: use `async with`")
        target = self._at + url[url.index("://") + 3 + len(authority) :]
        # encoded: the bytes of the address go out as they are.
        return self._session.get(
            URL(target, encoded=True), headers={**headers, "Host": authority}, allow_redirects=False
        )

    async def _read(self, answer: aiohttp.ClientResponse, headers: Mapping[str, str]) -> bytes:
        if answer.status in _REDIRECTS:
            return b""
        try:
            body = bytearray()
            while data := await answer.content.readany():
                body += data
                if len(body) > self._most.body_bytes:
                    raise FetchError(ErrorClass.TOO_LARGE, f"the body is over {self._most.body_bytes} bytes")
            return inflated(
                bytes(body),
                headers.get("content-encoding", ""),
                max_bytes=self._most.inflated_bytes,
                max_ratio=self._most.ratio,
            )
        except (FetchError, aiohttp.ClientPayloadError):
            if answer.status < 400:
                raise
            answer.close()
            return b""


def _typed(error: Exception, host: str) -> FetchError:
    said = f"{host}: {type(error).__name__}: {error}"[:200]
    if isinstance(error, TimeoutError):
        return FetchError(ErrorClass.TIMEOUT, said)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerDisconnectedError):
        return FetchError(ErrorClass.CONNECT, said)
    if isinstance(error, aiohttp.ClientPayloadError | OSError):
        return FetchError(ErrorClass.CUT_OFF, said)
    return FetchError(ErrorClass.BAD_CONTENT, said)


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    lowered: dict[str, str] = {}
    for name, value in headers.items():
        name = name.lower()
        lowered[name] = f"{lowered[name]}, {value}" if name in lowered else value
    return lowered
