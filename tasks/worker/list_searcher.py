"""Search of a site without a search: its lists are fetched, and the entries that mention the product are the hits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import unquote_to_bytes, urlsplit

from splitter.catalog.model import Engine
from splitter.urls import listed_keywords

from tasks.domain.address import sendable
from tasks.domain.failures import FetchError
from tasks.domain.pages import Hit, ListPage, ResultPage
from tasks.fetching.inflate import unpack
from tasks.fetching.permits import WaitTooLong
from tasks.reading.decode import decode
from tasks.reading.judge.product_match import product_match
from tasks.reading.page_jobs import ListJob
from tasks.worker.fetcher import Dependencies, Fetcher
from tasks.worker.list_cache import MOST_KEPT, ListEntries, matchable
from tasks.worker.searcher import NoteError, SearchResult, index_by_address

MOST_FILES = 20
"""Maximum number of sitemaps read from one index, the newest first."""

_WAIT_S = 20.0
_AT_ONCE = 500  # matched without letting others run: some milliseconds


class ListSearcher:
    """Reads the lists of one site for one attempt; a `Searcher` whose engine is not asked for words.

    Args:
        note_error: called if a sitemap of an index could not be read.
    """

    def __init__(
        self, site: str, engine: Engine, deps: Dependencies, fetcher: Fetcher, note_error: NoteError
    ) -> None:
        self._site = site
        self._engine = engine
        self._deps = deps
        self._fetcher = fetcher
        self._note_error = note_error

    async def read(self, url: str) -> SearchResult:
        """The hits of a list's page for the product that its address names behind ``#``.

        Raises:
            FetchError: it can't be read.
            WaitTooLong: a permit is too far ahead, or another attempt still reads it.
        """
        address = sendable(url)
        try:
            listed = await self._deps.lists.get_list(address, lambda: self._read(address), _WAIT_S)
        except TimeoutError:
            raise WaitTooLong(self._deps.hosts.name(url), _WAIT_S) from None
        hits = await self._mentioning(listed, listed_keywords(url))
        # A page of links does not report how many of them mention the product: they are counted.
        return index_by_address(ResultPage(None, hits, empty=not hits, more=listed.more))

    async def _mentioning(
        self, listed: ListEntries, keyword_sets: Sequence[Sequence[str]]
    ) -> tuple[Hit, ...]:
        hits: list[Hit] = []
        for place, (hit, text) in enumerate(listed.hits):
            if place % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
            if keyword_sets and product_match(keyword_sets, text).matches:
                hits.append(hit)
                if len(hits) == self._engine.max_hits:
                    break
        return tuple(hits)

    async def _read(self, url: str) -> ListEntries:
        """A list and those it names, each file once."""
        first = await self._file(url, search=True)
        hits = dict.fromkeys(first.hits)
        waiting = deque(first.further)
        asked = {url}
        while waiting and len(asked) < MOST_FILES and len(hits) < MOST_KEPT:
            further = waiting.popleft()
            if further in asked or self._deps.hosts.name(further) != self._site:
                continue
            asked.add(further)
            try:
                page = await self._file(further, search=False)
            except FetchError as error:
                await self._note_error(further, error)
                if error.error.facts.about_host:
                    break
            else:
                hits |= dict.fromkeys(page.hits)
                waiting.extendleft(reversed(page.further))
        own = (hit for hit in hits if self._deps.hosts.name(hit.url) == self._site)
        return ListEntries(tuple((hit, matchable(hit, _path(hit.url))) for hit in own), first.more)

    async def _file(self, url: str, *, search: bool) -> ListPage:
        response = await self._fetcher.page(url, self._engine.headers, search=search)
        response = replace(response, body=unpack(response.body))
        return await self._deps.reader.read(
            ListJob.from_response(response, self._deps.now(), rules=self._engine.results)
        )


def _path(url: str) -> str:
    """Return path and query of an address as text, in whatever encoding they are quoted."""
    parts = urlsplit(url)
    return decode(unquote_to_bytes(f"{parts.path} {parts.query}"), {}).text
