"""Requests of one attempt: robots.txt, then a send permit, then sign-in, then the request; all of it measured."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.browser import Browser
from tasks.fetching.downloader import BeforeRequest, Downloader, Trusts, nothing
from tasks.fetching.hosts import HostCatalog, slower
from tasks.fetching.pace import AnswerSample
from tasks.fetching.permits import Permits, WaitTooLong
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules, RobotsState
from tasks.reading.interstitials import check_blocked, redirect_target
from tasks.signin.signins import SignIns
from tasks.store.queue.leases import Lease
from tasks.worker.counters import Timing
from tasks.worker.list_cache import ListCache
from tasks.worker.page_parts import RENEW_EVERY_S, PageParts
from tasks.worker.page_reader import PageReader
from tasks.worker.pseudonyms import Pseudonyms
from tasks.worker.request_log import RequestLog, RequestRecord
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages
from tasks.worker.settings import CrawlSettings

_WITHOUT_BROWSER_S = 900.0

Sleep = Callable[[float], Awaitable[None]]
AnnounceWait = Callable[[float], None]


class NotAsked(FetchError):
    """robots.txt refuses the URL, or its host did not answer for it: no request was made."""


class RefusedRedirect(FetchError):
    """A redirect leads to an address that is no page, but a captcha or a login; it was not followed."""


class HostStopped(WaitTooLong):
    """The attempt stopped asking the host while this request waited for a permit. It was not made."""

    def __init__(self, host: str) -> None:
        super().__init__(host, math.inf)
        self.args = (f"{host} is left alone by this attempt",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Dependencies that a node's attempts share, of the node and of its process.

    Attributes:
        address: the node's, as hosts see it: permits, rests and paces are kept for it.
        now: aware time, for dates on pages; never for leases.
        sign_ins: None: no site is signed in to.
        pseudonyms: None: authors are stored by their names.
        reader: of the process; whoever made it closes it.
        browser: of the process, likewise; None: it has no Chromium.
        lists: of the process.
        requests: log of requests; None: they are not logged.
    """

    downloader: Downloader
    permits: Permits
    robots: RobotsCache
    hosts: HostCatalog
    address: str
    settings: CrawlSettings
    now: Callable[[], datetime]
    seen: SeenPages
    sign_ins: SignIns | None = None
    pseudonyms: Pseudonyms | None = None
    sleep: Sleep = asyncio.sleep
    reader: PageReader = field(default_factory=PageReader)
    browser: Browser | None = None
    lists: ListCache = field(default_factory=ListCache)
    rng: Random = field(default_factory=Random)
    requests: RequestLog | None = None


class Fetcher:
    """Fetches for one attempt.

    Args:
        announce_wait: called before each wait for a permit, with its seconds.
        site: the attempt's own; the timing keeps the response times of its host.
        lease: the attempt's, for the log of requests; None: there is no attempt.
        stopped: true for a URL whose host the attempt leaves alone from now on.
    """

    def __init__(
        self,
        deps: Dependencies,
        timing: Timing,
        announce_wait: AnnounceWait,
        site: str = "",
        lease: Lease | None = None,
        stopped: Callable[[str], bool] = nothing,
    ) -> None:
        self._deps = deps
        self._stopped = stopped
        self._timing = timing
        self._announce_wait = announce_wait
        self._site = site
        self._lease = lease
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def page(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        blocked: tuple[str, ...] = (),
        search: bool = False,
    ) -> Response:
        """Fetch a page if robots.txt allows it, with a permit, and signed in if its site requires it.

        Args:
            headers: in addition to the node's own: conditions, an engine's.
            blocked: patterns of addresses that are no page, but a captcha or a login: a redirect there is a
                refusal, which is not followed (so its host's robots.txt does not matter).
            search: the engine's own request, which alone may reach an engine on a private address.

        Raises:
            FetchError: no page, with its class.
            WaitTooLong: the host's next permit is too far ahead; `HostStopped`: nothing more is asked of it.
        """
        response = await self._ask(
            url,
            self._unless_redirected_to(blocked) if blocked else self._prepare_page,
            headers,
            trusts=self._deps.hosts.is_private_search if search else self._is_private_page,
        )
        self._timing.bytes += len(response.body)
        return response

    async def render(self, url: str) -> Response:
        """Fetch a page like `page`, and have a browser run its scripts. Their requests are fetched like pages.

        Raises:
            FetchError: no page, with its class.
            WaitTooLong: as `page`; or there is no browser to be had.
        """
        document = await self.page(url)
        if "html" not in document.headers.get("content-type", "html").lower():
            return document
        browser = self._deps.browser
        if browser is None:
            raise WaitTooLong("Chromium", _WITHOUT_BROWSER_S)
        parts = PageParts(document.url, self._part, self._deps.hosts, self._timing, self._announce_wait)
        with self._timing.waiting:
            while not await browser.enter(RENEW_EVERY_S):
                parts.renew_if_due()
        try:
            return await browser.render(document, parts.ask, parts.is_own)
        finally:
            browser.leave()

    async def _part(self, url: str, headers: Mapping[str, str], own: bool) -> Response:
        """Send a request of a page's scripts. Only the page's own host gets the sign-in and may be private."""
        trusts = self._is_private_page if own else nothing
        before = self._prepare_page if own else self._prepare_part
        response = await self._ask(url, before, headers, trusts)
        self._timing.bytes += len(response.body)
        return response

    async def redirect_target(self, url: str, headers: Mapping[str, str] | None = None) -> str | None:
        """Request a link like a page and return the address that it redirects to; None if it does not redirect.

        Raises:
            FetchError, WaitTooLong: as `page`.
        """
        response = await self._ask(url, self._prepare_page, headers, self._is_private_page, follow=False)
        self._timing.bytes += len(response.body)
        return redirect_target(response)

    async def sign_in_again(self, url: str, error: FetchError) -> bool:
        """Sign in again after this refusal. Return True if it worked, so that another try may succeed."""
        sign_ins = self._deps.sign_ins
        return sign_ins is not None and error.error.facts.is_signed_out and await sign_ins.renew_refused(url)

    async def robots(self, url: str) -> RobotsRules:
        """Return the robots.txt of the host of `url`. It is fetched, with a permit, unless it is cached.

        Nothing is known of it if the permit is too far ahead.
        """
        try:
            return await self._rules(url)
        except WaitTooLong:
            return RobotsRules(RobotsState.UNKNOWN)

    async def _rules(self, url: str) -> RobotsRules:
        return await self._deps.robots.rules(url, self._robots_file, self._deps.address)

    async def _robots_file(self, url: str) -> Response:
        return await self._ask(url, self._await_permit, trusts=self._deps.hosts.is_private_robots)

    def _is_private_page(self, url: str) -> bool:
        return self._deps.hosts.is_private_page(self._site, url)

    async def _ask(
        self,
        url: str,
        before: BeforeRequest,
        headers: Mapping[str, str] | None = None,
        trusts: Trusts = nothing,
        **how: Any,
    ) -> Response:
        deps = self._deps
        try:
            response = await deps.downloader.fetch(
                url,
                timeout_s=deps.settings.request_timeout_s,
                headers=headers,
                before_request=before,
                trusts=trusts,
                note=self._note,
                **how,
            )
        except FetchError as error:
            if not isinstance(error, NotAsked):
                self._timing.answers += error.response is not None or isinstance(error, RefusedRedirect)
                if error.error is ErrorClass.NOT_FOUND and error.response is not None:
                    self._time(error.response)
                await self._observe(url, AnswerSample.failure(error, self._elapsed_s(error)))
            raise
        self._timing.answers += 1
        self._time(response)
        await self._observe(url, AnswerSample(response.elapsed_s))
        return response

    def _note(self, url: str, status: int, size: int, seconds: float, error: str) -> None:
        deps, lease = self._deps, self._lease
        self._timing.statuses[str(status) if status else error] += 1
        if deps.requests is not None:
            deps.requests.note(
                RequestRecord(
                    at=deps.now(),
                    node=lease.node if lease is not None else deps.address,
                    site=self._site,
                    host=deps.hosts.name(url),
                    url=url,
                    status=status,
                    size=size,
                    seconds=seconds,
                    error=error,
                    subtask=lease.subtask_id if lease is not None else 0,
                    attempt=lease.attempt_id if lease is not None else 0,
                )
            )

    def _time(self, response: Response) -> None:
        """Keep how soon the attempt's site answered; a response of another host, after a redirect, is left out."""
        if self._deps.hosts.name(response.url) == self._site:
            self._timing.record_answer(response.first_byte_s)

    def _elapsed_s(self, error: FetchError) -> float:
        if error.response is not None:
            return error.response.elapsed_s
        return self._deps.settings.request_timeout_s if error.error is ErrorClass.TIMEOUT else 0.0

    async def _observe(self, url: str, answer: AnswerSample) -> None:
        deps = self._deps
        host = deps.hosts.name(url)
        await deps.permits.observe(host, deps.address, deps.hosts.limits(host), answer)

    async def _check_robots(self, url: str) -> float | None:
        """Return the Crawl-delay of the robots.txt that allows the URL. Raises NotAsked if robots.txt refuses it."""
        rules = await self._rules(url)
        if not rules.state.answered:
            raise NotAsked(
                ErrorClass.CONNECT,
                Message(
                    "the host does not answer for robots.txt: {state}",
                    state=Message(rules.state.replace("_", " ")),
                ),
            )
        if not rules.allows(url, ROBOTS_TOKEN):
            raise NotAsked(ErrorClass.ROBOTS, Message("robots.txt of its host refuses {url}", url=url))
        return rules.crawl_delay_s(ROBOTS_TOKEN)

    def _unless_redirected_to(self, blocked: tuple[str, ...]) -> BeforeRequest:
        requested = False

        async def prepare(url: str) -> Mapping[str, str] | None:
            nonlocal requested
            error = check_blocked("", url, blocked) if requested else None
            requested = True
            if error is not None:
                raise RefusedRedirect(error, Message("is redirected to {url}", url=url[:200]))
            return await self._prepare_page(url)

        return prepare

    async def _prepare_part(self, url: str) -> None:
        crawl_delay_s = await self._check_robots(url) if self._deps.hosts.obeys_robots(url) else None
        await self._await_permit(url, crawl_delay_s, self._stopped)

    async def _prepare_page(self, url: str) -> Mapping[str, str] | None:
        await self._prepare_part(url)
        sign_ins = self._deps.sign_ins
        if sign_ins is None:
            return None
        await sign_ins.ensure(url)
        # Of this address alone: what one host may have, the next of a redirect may not.
        return sign_ins.headers_for(url)

    async def _await_permit(
        self, url: str, crawl_delay_s: float | None = None, stopped: Callable[[str], bool] = nothing
    ) -> None:
        deps = self._deps
        host = deps.hosts.name(url)
        limits = slower(deps.hosts.limits(host), crawl_delay_s)
        # Reserved permits may lie far ahead. One lane at a time waits for a host and its answer: other lanes would only
        # reserve its permits further ahead, and requests of better attempts would queue behind them.
        with self._timing.waiting:
            async with self._turns[host]:
                if stopped(url):
                    raise HostStopped(host)
                wait_s = await deps.permits.reserve(host, deps.address, limits)
                if wait_s > deps.settings.longest_wait_s:
                    raise WaitTooLong(host, wait_s)
                if wait_s > 0:
                    self._announce_wait(wait_s)
                    await deps.sleep(wait_s)
                    if stopped(url):
                        raise HostStopped(host)
        self._timing.requests += 1
