"""How far a host is, by what a crawl pays for: the response time of an HTTP request (`httpping`, 2010 paper).

Many sites don't answer a ping, all that matter answer HTTP. The first request is not counted: it looks up the name,
connects, and follows the redirects of a front page. Those after it ask the address it led to, over the connection
that is kept, for one byte of it. What counts is the time to the first byte of the answer: one round trip and the host's
own work, whether or not the host knows ranges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tasks.domain.crawl import ErrorClass, FetchError, Response
from tasks.fetching.permits import WaitTooLong
from tasks.scheduling.proximity.noise import without_noise

Ask = Callable[[str, Mapping[str, str]], Awaitable[Response]]
"""Asks an address with these headers, in its turn and where robots.txt allows it: `Fetcher.page`."""

# Packed, one byte of a page would be no page.
_ONE_BYTE = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}
# No page, but an answer as fast as one.
_ANSWERS = frozenset({ErrorClass.NOT_FOUND, ErrorClass.OTHER_STATUS})
# Another request would be lost in the same way. The rest may pass: a broken connection, an overloaded host.
_PASSING = frozenset({ErrorClass.TIMEOUT, ErrorClass.CONNECT, ErrorClass.CUT_OFF})


@dataclass(frozen=True, slots=True)
class PingSettings:
    """How hard to try.

    Attributes:
        measurements: counted, at most.
        requests: made, at most: one more for each new connection or address, and those that are lost.
        fewest: measurements below which there is no result.
        lost: requests in a row without an answer after which no more is asked.
        longest_s: for all of it, waits for send times included.
    """

    measurements: int = 5
    requests: int = 9
    fewest: int = 3
    lost: int = 2
    longest_s: float = 60.0


DEFAULT = PingSettings()


@dataclass(frozen=True, slots=True)
class Ping:
    """How far a host is.

    Attributes:
        url: the address measured, behind the redirects.
        rtt_ms: with the noise removed.
        measured_ms: each measurement, in its order.
    """

    url: str
    rtt_ms: float
    measured_ms: tuple[float, ...]


async def httpping(url: str, ask: Ask, settings: PingSettings = DEFAULT) -> Ping:
    """Measure the response time of a host, in a bounded number of requests and of seconds.

    A 404 or another 4xx is an answer as good as a page. A refusal (403, 429, robots.txt ...) or a server error ends it
    at once: who does not want to be asked is not asked again.

    Args:
        url: an address of the host, its front page as a rule.
        ask: makes one request, with the politeness of the crawl.
        settings: how hard to try.

    Returns:
        The result of what was measured, if that is enough, even where trouble cut it short.

    Raises:
        FetchError: too few measurements; with the class of the trouble: TIMEOUT where time ran out, REDIRECTS where
            each request was sent on to a new address.
        WaitTooLong: too few measurements, because the host can't be asked soon.
    """
    series = _Series(url, ask, settings)
    trouble: Exception | None = None
    try:
        async with asyncio.timeout(settings.longest_s):
            await series.run()
    except TimeoutError:
        trouble = FetchError(
            ErrorClass.TIMEOUT,
            f"{len(series.measured_ms)} of {settings.fewest} response times of {url} in {settings.longest_s:g} s",
        )
    except (FetchError, WaitTooLong) as error:
        trouble = error
    if trouble is not None and len(series.measured_ms) < settings.fewest:
        raise trouble
    return Ping(series.url, without_noise(series.measured_ms), tuple(series.measured_ms))


class _Series:
    """The requests of one ping; keeps what was measured when one of them ends it."""

    def __init__(self, url: str, ask: Ask, settings: PingSettings) -> None:
        self.url = url
        self.measured_ms: list[float] = []
        self._ask = ask
        self._settings = settings

    async def run(self) -> None:
        """Ask until there are enough measurements, or trouble is raised."""
        lost = 0
        warm = False
        for _ in range(self._settings.requests):
            try:
                answer = await self._answer()
            except FetchError as error:
                lost += 1
                if error.error not in _PASSING or lost >= self._settings.lost:
                    raise
                # Its connection is gone: the next one connects anew.
                warm = False
                continue
            lost = 0
            # A request that was redirected measures two ways.
            if warm and answer.url == self.url and answer.first_byte_s > 0.0:
                self.measured_ms.append(answer.first_byte_s * 1000.0)
                if len(self.measured_ms) == self._settings.measurements:
                    return
            self.url, warm = answer.url, True
        raise FetchError(
            ErrorClass.REDIRECTS,
            f"{len(self.measured_ms)} of {self._settings.requests} requests for {self.url} were answered on the spot",
        )

    async def _answer(self) -> Response:
        try:
            return await self._ask(self.url, _ONE_BYTE)
        except FetchError as error:
            if error.error in _ANSWERS and error.response is not None:
                return error.response
            raise
