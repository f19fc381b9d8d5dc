"""Result pages of one attempt: fetched, read, the engine's own links resolved, hits by their canonical addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import tzinfo

from splitter.catalog.model import Engine
from splitter.catalog.paths import condition_of
from splitter.catalog.patterns import compile_pattern

from tasks.domain.failures import FetchError
from tasks.domain.page_key import canonical, page_key
from tasks.domain.pages import Hit, ResultPage
from tasks.fetching.permits import WaitTooLong
from tasks.reading.interstitials import address_in, check_blocked
from tasks.reading.page_jobs import ResultJob
from tasks.store.queue.result_pages import FoundHit
from tasks.worker.fetcher import Dependencies, Fetcher, NotAsked

NoteError = Callable[[str, FetchError], Awaitable[None]]
"""Called with the error of a request that costs no page."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A result page and its hits by their canonical addresses, each once.

    Attributes:
        posts: hits that are whole posts, by their keys.
    """

    page: ResultPage
    hits: tuple[FoundHit, ...]
    posts: dict[bytes, Hit]


class Searcher:
    """Reads the result pages of one engine for one attempt.

    Args:
        zone: the time zone of that site, for posts that result pages hold.
        note_error: called if a redirecting link of the engine could not be resolved.
    """

    def __init__(
        self,
        engine: Engine,
        zone: tzinfo,
        deps: Dependencies,
        fetcher: Fetcher,
        note_error: NoteError,
    ) -> None:
        self._zone = zone
        self._rules = engine.results
        self._headers = engine.headers
        self._redirects = tuple(map(compile_pattern, engine.redirects))
        # Conditions are about JSON, not about addresses.
        self._blocked = tuple(rule for rule in engine.results.blocked if condition_of(rule) is None)
        self._deps = deps
        self._fetcher = fetcher
        self._note_error = note_error
        self._targets: dict[str, str] = {}

    async def read(self, url: str) -> SearchResult:
        """A result page. Raises FetchError, WaitTooLong."""
        response = await self._fetcher.page(url, self._headers, blocked=self._blocked, search=True)
        now = self._deps.now().astimezone(self._zone)
        page = await self._deps.reader.read(ResultJob.from_response(response, now, rules=self._rules))
        return index_by_address(await self._resolve_links(page))

    async def _resolve_links(self, page: ResultPage) -> ResultPage:
        """Return the page with the targets of the engine's own redirecting links, as far as they are available."""
        links = [hit.url for hit in page.hits if any(form.search(hit.url) for form in self._redirects)]
        self._targets |= {link: address for link in links if (address := address_in(link))}
        unresolved = [link for link in links if link not in self._targets]
        if unresolved:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._deps.settings.lanes, len(unresolved))):
                    group.create_task(self._lane(unresolved))
        if not links:
            return page
        hits = tuple(replace(hit, url=self._targets.get(hit.url, hit.url)) for hit in page.hits)
        return replace(page, hits=hits)

    async def _lane(self, links: list[str]) -> None:
        """Resolve links until there are none, or the engine refuses. Unresolved links stay as they are."""
        while links:
            link = links.pop()
            try:
                address = await self._fetcher.redirect_target(link, self._headers)
            except WaitTooLong:
                links.clear()
            except FetchError as error:
                if isinstance(error, NotAsked) or error.error.facts.about_host:
                    links.clear()
                if not isinstance(error, NotAsked):
                    await self._note_error(link, error)
            else:
                if address and check_blocked("", address, self._blocked) is None:
                    self._targets[link] = address


def index_by_address(page: ResultPage) -> SearchResult:
    """Return a result page's hits by canonical address, each once. Addresses that can't be requested are left out."""
    found: dict[bytes, FoundHit] = {}
    posts: dict[bytes, Hit] = {}
    for hit in page.hits:
        try:
            key = page_key(hit.url)
            if key not in found:
                found[key] = FoundHit(canonical(hit.url), key)
                if hit.post is not None:
                    posts[key] = hit
        except FetchError:
            continue
    return SearchResult(page, tuple(found.values()), posts)
