"""Addresses to what is stored of them: one result page, or one page with its reviews, asked for and read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from splitter.catalog.model import Catalog

from tasks.crawl.canonical import canonical, page_key
from tasks.crawl.decode import decode
from tasks.crawl.extract import read_page
from tasks.crawl.fetching import Fetcher, Kit, WaitTooLong
from tasks.crawl.meter import Meter
from tasks.crawl.model import FetchError, PageRead, Response, ResultPage, Review
from tasks.crawl.results import read_results
from tasks.store.leases import WorkTarget
from tasks.store.pages import FoundHit, NewPage

_NOT_MODIFIED = 304

Met = Callable[[str, FetchError], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A result page and its hits by their canonical addresses, each once."""

    page: ResultPage
    hits: tuple[FoundHit, ...]


class Collector:
    """Collects for one attempt on one site.

    Args:
        meter: measures requests and reading as active time.
        met: told what went wrong with a later part of a list, which costs no page.
    """

    def __init__(
        self, site: str, kit: Kit, catalog: Catalog, fetcher: Fetcher, meter: Meter, met: Met
    ) -> None:
        self._kit = kit
        self._fetcher = fetcher
        self._meter = meter
        self._met = met
        self._results = catalog.engine_of(site).results
        self._rules = catalog.rules_of(site)

    async def results(self, url: str) -> ReadResult:
        """A result page. Raises FetchError, WaitTooLong."""

        async def once() -> ReadResult:
            response = await self._fetcher.page(url)
            text, _ = decode(response.body, response.headers)
            page = read_results(text, response.url, self._results)
            return ReadResult(page, _found_hits(page))

        with self._meter.active:
            try:
                return await once()
            except FetchError as error:
                if not await self._fetcher.signed_in_again(url, error):
                    raise
                return await once()

    async def page(self, target: WorkTarget) -> NewPage | None:
        """A page with its reviews, all parts of their list; None where it has not changed since it was stored.

        Raises:
            FetchError: no page, with its class.
            WaitTooLong: its host can be asked too far ahead only.
        """

        async def once() -> NewPage | None:
            response = await self._fetcher.page(target.url, _conditions(target))
            if response.status == _NOT_MODIFIED:
                return None
            return await self._read(target, response)

        with self._meter.active:
            try:
                return await once()
            except FetchError as error:
                if not await self._fetcher.signed_in_again(target.url, error):
                    raise
                return await once()

    async def _read(self, target: WorkTarget, response: Response) -> NewPage:
        read, encoding = await self._read_one(response)
        reviews = read.reviews
        digest = blake2b(response.body, digest_size=16)
        size = len(response.body)
        if read.next_url:
            more = await self._further_parts(read, {target.url, response.url})
            for part, body in more:
                reviews = _together(reviews, part.reviews)
                digest.update(body)
                size += len(body)
        headers = response.headers
        return NewPage(
            target.id,
            target.url,
            target.key,
            read.title,
            digest.hexdigest(),
            encoding,
            size,
            reviews,
            # Of a list in several parts, the first one's word is no word on the others.
            _validator(headers, "etag") if not read.next_url else None,
            _validator(headers, "last-modified") if not read.next_url else None,
        )

    async def _read_one(self, response: Response) -> tuple[PageRead, str]:
        text, encoding = decode(response.body, response.headers)
        now = self._kit.now()
        if self._rules.main_text:
            # Milliseconds, in which others' answers would wait.
            return await asyncio.to_thread(read_page, text, response.url, self._rules, now=now), encoding
        return read_page(text, response.url, self._rules, now=now), encoding

    async def _further_parts(self, first: PageRead, asked: set[str]) -> list[tuple[PageRead, bytes]]:
        """The parts of a review list behind its first, as far as they can be had."""
        parts: list[tuple[PageRead, bytes]] = []
        url = first.next_url
        while url and url not in asked and len(parts) < self._kit.settings.list_parts - 1:
            asked.add(url)
            try:
                response = await self._fetcher.page(url)
                read, _ = await self._read_one(response)
            except FetchError as error:
                await self._met(url, error)
                break
            except WaitTooLong:
                break
            parts.append((read, response.body))
            url = read.next_url
        return parts


def _validator(headers: Mapping[str, str], name: str) -> str | None:
    """What a page may be asked again with; nothing where it is no text that a database takes."""
    value = headers.get(name, "")
    return value if value and value.isascii() and value.isprintable() else None


def _conditions(target: WorkTarget) -> dict[str, str]:
    conditions = {}
    if target.etag:
        conditions["If-None-Match"] = target.etag
    if target.last_modified:
        conditions["If-Modified-Since"] = target.last_modified
    return conditions


def _together(reviews: tuple[Review, ...], further: tuple[Review, ...]) -> tuple[Review, ...]:
    """Reviews of two parts of a list: those that have only their place get it over the whole list."""
    keys = {review.key for review in reviews}
    joined = list(reviews)
    for review in further:
        if review.key.startswith("#"):
            # A place may be taken: parts count those of empty records, too.
            review = review._replace(key=_free_place(keys, len(joined)))
        if review.key not in keys:
            keys.add(review.key)
            joined.append(review)
    return tuple(joined)


def _free_place(keys: set[str], place: int) -> str:
    while f"#{place}" in keys:
        place += 1
    return f"#{place}"


def _found_hits(page: ResultPage) -> tuple[FoundHit, ...]:
    """A result page's hits by their canonical addresses, each once; addresses that cannot be asked are left out."""
    found: dict[bytes, FoundHit] = {}
    for hit in page.hits:
        try:
            key = page_key(hit.url)
            found.setdefault(key, FoundHit(canonical(hit.url), key))
        except FetchError:
            continue
    return tuple(found.values())
