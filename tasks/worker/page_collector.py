"""Addresses to what is stored of them: one result page, or one page with its reviews, asked for and read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import blake2b
from types import MappingProxyType

from splitter.catalog.model import Catalog

from tasks.domain.failures import FetchError
from tasks.domain.pages import Hit, PageRead, Response, Review
from tasks.domain.product_match import matchable_text
from tasks.fetching.permits import WaitTooLong
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.relevance import screen_reviews
from tasks.store.leases import WorkTarget
from tasks.store.pages import NewPage
from tasks.worker.fetcher import Dependencies, Fetcher
from tasks.worker.searcher import Met, ReadResult, Searcher
from tasks.worker.timing import Timing

_NOT_MODIFIED = 304


class Collector:
    """Collects for one attempt on one site.

    Args:
        timing: measures requests and reading as active time.
        met: told what went wrong with a later part of a list, which costs no page.
    """

    def __init__(
        self, site: str, deps: Dependencies, catalog: Catalog, fetcher: Fetcher, timing: Timing, met: Met
    ) -> None:
        self._deps = deps
        self._fetcher = fetcher
        self._timing = timing
        self._met = met
        self._searcher = Searcher(catalog.engine_of(site), deps, fetcher, met)
        self._posts: dict[bytes, Hit] = {}
        self._rules = catalog.rules_of(site)
        self._encoding_hint = catalog.sites[site].encoding
        self._judge = catalog.sites[site].judge

    async def results(self, url: str) -> ReadResult:
        """A result page. Raises FetchError, WaitTooLong."""
        with self._timing.active:
            try:
                result = await self._searcher.read(url)
            except FetchError as error:
                if not await self._fetcher.signed_in_again(url, error):
                    raise
                result = await self._searcher.read(url)
        self._posts |= result.posts
        return result

    def post(self, target: WorkTarget) -> NewPage | None:
        """The page of a hit that was read as a whole post with its result page; None: it is to be asked for."""
        hit = self._posts.pop(target.key, None)
        if hit is None or hit.post is None:
            return None
        body = hit.post.body.encode("utf-8", "replace")
        digest = blake2b(body, digest_size=16).hexdigest()
        read = PageRead(hit.title, (hit.post,))
        return self._new_page(target, read, read.reviews, digest, "utf-8", len(body))

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

        with self._timing.active:
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
        # Of a list in several parts, the first one's word is no word on the others.
        headers = response.headers if not read.next_url else {}
        return self._new_page(target, read, reviews, digest.hexdigest(), encoding, size, headers)

    def _new_page(
        self,
        target: WorkTarget,
        read: PageRead,
        reviews: tuple[Review, ...],
        digest: str,
        encoding: str,
        size: int,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> NewPage:
        refused: Mapping[str, int] = {}
        said = None
        if self._judge:
            kept, refused = screen_reviews(read, reviews, main_text=self._rules.main_text)
            reviews = kept
            said = matchable_text(read.title, ((review.title, review.body) for review in reviews))
        return NewPage(
            target.id,
            target.url,
            target.key,
            read.title,
            digest,
            encoding,
            size,
            reviews,
            _validator(headers, "etag"),
            _validator(headers, "last-modified"),
            refused,
            said,
        )

    async def _read_one(self, response: Response) -> tuple[PageRead, str]:
        text, encoding, _ = decode(response.body, response.headers, self._encoding_hint)
        now = self._deps.now()
        if self._rules.main_text:
            # Milliseconds, in which others' answers would wait.
            return await asyncio.to_thread(read_page, text, response.url, self._rules, now=now), encoding
        return read_page(text, response.url, self._rules, now=now), encoding

    async def _further_parts(self, first: PageRead, asked: set[str]) -> list[tuple[PageRead, bytes]]:
        """The parts of a review list behind its first, as far as they can be had."""
        parts: list[tuple[PageRead, bytes]] = []
        url = first.next_url
        while url and url not in asked and len(parts) < self._deps.settings.list_parts - 1:
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
