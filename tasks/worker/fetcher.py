"""One attempt's way of asking: robots.txt, then a granted send time, then the request, all measured."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.downloader import BeforeRequest, Downloader
from tasks.fetching.hosts import HostBook, slower
from tasks.fetching.pace import AnswerSample
from tasks.fetching.permits import Permits, WaitTooLong
from tasks.fetching.robots import RobotsRules
from tasks.reading.interstitials import check_blocked, redirect_target
from tasks.signin.signins import SignIns
from tasks.worker.pseudonyms import Pseudonyms
from tasks.worker.robots_book import RobotsBook
from tasks.worker.seen import SeenPages
from tasks.worker.settings import CrawlSettings
from tasks.worker.timing import Timing

_SIGNED_OUT = frozenset({ErrorClass.LOGIN_WALL, ErrorClass.FORBIDDEN})

Sleep = Callable[[float], Awaitable[None]]
Promise = Callable[[float], None]


class NotAsked(FetchError):
    """robots.txt refuses the URL, or its host did not answer for it: no request was made."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a node's attempts share: its downloader and the books of its process."""

    downloader: Downloader
    permits: Permits
    robots: RobotsBook
    hosts: HostBook
    address: str
    settings: CrawlSettings
    now: Callable[[], datetime]
    seen: SeenPages
    sign_ins: SignIns | None = None
    pseudonyms: Pseudonyms | None = None
    sleep: Sleep = asyncio.sleep
    rng: Random = field(default_factory=Random)


class Fetcher:
    """Fetches for one attempt.

    Args:
        promise: told how long the attempt will be quiet because it waits for a granted send time.
        site: host whose response times the timing is told of.
    """

    def __init__(self, deps: Dependencies, timing: Timing, promise: Promise, site: str = "") -> None:
        self._deps = deps
        self._timing = timing
        self._promise = promise
        self._site = site

    async def page(
        self, url: str, headers: Mapping[str, str] | None = None, *, blocked: tuple[str, ...] = ()
    ) -> Response:
        """Fetch a page: refused by robots.txt or not, in its turn, signed in where its site asks for it.

        Args:
            headers: in addition to the node's own: conditions, an engine's.
            blocked: patterns of addresses that are no page, but a captcha or a login: a redirect there is a
                refusal at once, which is not followed (its host's robots.txt has no say in that).

        Raises:
            FetchError: no page, with its class.
            WaitTooLong: the host's next free send time is too far ahead.
        """
        response = await self._ask(
            url, self._unless_blocked(blocked) if blocked else self._before_page, headers
        )
        self._timing.bytes += len(response.body)
        return response

    async def leads_to(self, url: str, headers: Mapping[str, str] | None = None) -> str | None:
        """Where a link leads on, asked like a page, but without going there; None where the answer does not say.

        Raises:
            FetchError, WaitTooLong: as `page`.
        """
        response = await self._ask(url, self._before_page, headers, follow=False)
        self._timing.bytes += len(response.body)
        return redirect_target(response)

    async def signed_in_again(self, url: str, error: FetchError) -> bool:
        """Whether, after this refusal, a new sign-in makes another try worth while."""
        sign_ins = self._deps.sign_ins
        return sign_ins is not None and error.error in _SIGNED_OUT and await sign_ins.refused(url)

    async def robots(self, url: str) -> RobotsRules:
        """What robots.txt of the host of `url` says; fetched in its turn where it is not known."""
        return await self._deps.robots.rules(url, self._robots_file)

    async def _robots_file(self, url: str) -> Response:
        try:
            return await self._ask(url, self._in_turn)
        except WaitTooLong as wait:
            raise FetchError(ErrorClass.CONNECT, str(wait)) from None

    async def _ask(
        self,
        url: str,
        before: BeforeRequest,
        headers: Mapping[str, str] | None = None,
        **how: bool,
    ) -> Response:
        deps = self._deps
        try:
            response = await deps.downloader.fetch(
                url, timeout_s=deps.settings.request_timeout_s, headers=headers, before_request=before, **how
            )
        except FetchError as error:
            if not isinstance(error, NotAsked):
                if error.error is ErrorClass.NOT_FOUND and error.response is not None:
                    self._timed(error.response)
                await self._observed(url, AnswerSample.failed(error, self._took_s(error)))
            raise
        self._timed(response)
        await self._observed(url, AnswerSample(response.elapsed_s))
        return response

    def _timed(self, response: Response) -> None:
        """Tell the timing how soon the attempt's site answered: what a redirect led elsewhere says nothing of it."""
        if self._deps.hosts.name(response.url) == self._site:
            self._timing.answered(response.first_byte_s)

    def _took_s(self, error: FetchError) -> float:
        if error.response is not None:
            return error.response.elapsed_s
        return self._deps.settings.request_timeout_s if error.error is ErrorClass.TIMEOUT else 0.0

    async def _observed(self, url: str, answer: AnswerSample) -> None:
        deps = self._deps
        host = deps.hosts.name(url)
        await deps.permits.observe(host, deps.address, deps.hosts.limits(host), answer)

    async def _allowed(self, url: str) -> float | None:
        """The Crawl-delay of the robots.txt that allows the URL. Raises NotAsked where it does not."""
        rules = await self.robots(url)
        if not rules.state.answered:
            raise NotAsked(ErrorClass.CONNECT, f"the host's robots.txt is not answered: {rules.state.value}")
        agent = self._deps.settings.robots_token
        if not rules.allows(url, agent):
            raise NotAsked(ErrorClass.ROBOTS, f"robots.txt of its host refuses {url}")
        return rules.crawl_delay_s(agent)

    def _unless_blocked(self, blocked: tuple[str, ...]) -> BeforeRequest:
        asked = 0

        async def before(url: str) -> Mapping[str, str] | None:
            nonlocal asked
            asked += 1
            error = check_blocked("", url, blocked) if asked > 1 else None
            if error is not None:
                raise FetchError(error, f"is redirected to {url[:200]}")
            return await self._before_page(url)

        return before

    async def _before_page(self, url: str) -> Mapping[str, str] | None:
        crawl_delay_s = await self._allowed(url) if self._deps.hosts.obeys_robots(url) else None
        await self._in_turn(url, crawl_delay_s)
        sign_ins = self._deps.sign_ins
        if sign_ins is None:
            return None
        await sign_ins.ensure(url)
        # Of this address alone: what one host may have, the next of a redirect may not.
        return sign_ins.headers_for(url)

    async def _in_turn(self, url: str, crawl_delay_s: float | None = None) -> None:
        deps = self._deps
        host = deps.hosts.name(url)
        limits = slower(deps.hosts.limits(host), crawl_delay_s)
        with self._timing.waiting:  # for the answer, too: the send times may be kept far away
            wait_s = await deps.permits.reserve(host, deps.address, limits)
            if wait_s > deps.settings.longest_wait_s:
                raise WaitTooLong(host, wait_s)
            if wait_s > 0:
                self._promise(wait_s)
                await deps.sleep(wait_s)
        self._timing.requests += 1
