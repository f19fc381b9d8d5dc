"""Result pages and pages of one attempt: fetched, read, and made ready to be stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from types import MappingProxyType

from splitter.catalog.model import Catalog

from tasks.domain.failures import FetchError
from tasks.domain.pages import Hit, PageRead, Response, Review
from tasks.domain.verdicts import Verdict
from tasks.fetching.permits import WaitTooLong
from tasks.reading.copies.copy_key import copy_key
from tasks.reading.judge.product_match import matchable_text
from tasks.reading.judge.reviews import add_judgements
from tasks.reading.judge.verdicts import judge_page
from tasks.reading.page_jobs import PageJob
from tasks.reading.relevance import screen_reviews
from tasks.store.content.pages import NewPage
from tasks.store.content.reviews import PageOrigin, records_of
from tasks.store.queue.leases import Lease, WorkTarget
from tasks.store.sql.rows import storable
from tasks.worker.counters import Timing
from tasks.worker.fetcher import Dependencies, Fetcher
from tasks.worker.list_searcher import ListSearcher
from tasks.worker.searcher import NoteError, Searcher, SearchResult

_NOT_MODIFIED = 304
_NO_RECORD = Review("#0", "", "", "", "", None, None)


class PageCollector:
    """Collects for one attempt on one site.

    Args:
        timing: measures requests and reading as active time.
        note_error: called with the error of a later part of a list, which costs no page.

    Attributes:
        keyword_sets, category: of the product that pages are collected for; set before the first page.
    """

    def __init__(
        self,
        lease: Lease,
        deps: Dependencies,
        catalog: Catalog,
        fetcher: Fetcher,
        timing: Timing,
        note_error: NoteError,
    ) -> None:
        site = lease.site
        self._lease = lease
        self._deps = deps
        self._fetcher = fetcher
        self._timing = timing
        self._note_error = note_error
        self._zone = catalog.zone_of(site)
        engine = catalog.engine_of(site)
        self._searcher: Searcher | ListSearcher = (
            ListSearcher(site, engine, deps, fetcher, note_error)
            if engine.discover == "list"
            else Searcher(engine, self._zone, deps, fetcher, note_error)
        )
        self._posts: dict[bytes, Hit] = {}
        self._rules = catalog.rules_of(site)
        self._is_made_by_script = catalog.renders(site)
        self._site = catalog.sites[site]
        self.keyword_sets: Sequence[Sequence[str]] = ()
        self.category: str | None = None

    async def results(self, url: str) -> SearchResult:
        """Return a result page. Raises FetchError, WaitTooLong."""
        with self._timing.active:
            try:
                result = await self._searcher.read(url)
            except FetchError as error:
                if not await self._fetcher.sign_in_again(url, error):
                    raise
                result = await self._searcher.read(url)
        if result.posts:
            self._posts |= await asyncio.to_thread(self._judge_posts, result.posts)
        return result

    def _judge_posts(self, hits: Mapping[bytes, Hit]) -> dict[bytes, Hit]:
        """Return hits that are whole posts, each with its voice and themes."""
        posts = [hit.post for hit in hits.values() if hit.post is not None]
        judged = iter(add_judgements(posts, self._site.group, self.category))
        return {key: replace(hit, post=next(judged)) for key, hit in hits.items() if hit.post is not None}

    def post(self, target: WorkTarget) -> NewPage | None:
        """Return the page of a hit that its result page held as a whole post; None: it has to be requested."""
        hit = self._posts.pop(target.key, None)
        if hit is None or hit.post is None:
            return None
        body = hit.post.body.encode("utf-8", "replace")
        return self._new_page(target, PageRead(hit.title, (hit.post,)), [body], "utf-8")

    async def page(self, target: WorkTarget) -> NewPage | None:
        """Return a page with its reviews from all parts of their list; None if it is unchanged since it was stored.

        Raises:
            FetchError: no page, with its class.
            WaitTooLong: its host's next permit is too far ahead.
        """

        async def once() -> NewPage | None:
            # An unchanged document is no evidence that the data its scripts fetch is unchanged.
            conditions = None if self._is_made_by_script else _conditions(target)
            response = await self._page(target.url, conditions)
            if response.status == _NOT_MODIFIED:
                return None
            return await self._read(target, response)

        with self._timing.active:
            try:
                return await once()
            except FetchError as error:
                if not await self._fetcher.sign_in_again(target.url, error):
                    raise
                return await once()

    async def _page(self, url: str, conditions: Mapping[str, str] | None = None) -> Response:
        if self._is_made_by_script:
            return await self._fetcher.render(url)
        return await self._fetcher.page(url, conditions)

    async def _read(self, target: WorkTarget, response: Response) -> NewPage:
        read, encoding = await self._read_one(response)
        if not read.next_url:
            return self._new_page(target, read, [response.body], encoding, response.headers)
        reviews = read.reviews
        bodies = [response.body]
        for part, body in await self._further_parts(read, {target.url, response.url}):
            reviews = _join_parts(reviews, part.reviews)
            bodies.append(body)
        # No headers: the validators of a list's first part say nothing about the others.
        return self._new_page(target, replace(read, reviews=reviews), bodies, encoding)

    def _new_page(
        self,
        target: WorkTarget,
        read: PageRead,
        bodies: Sequence[bytes],
        encoding: str,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> NewPage:
        reviews, verdict, missing = read.reviews, Verdict.REVIEW, tuple[str, ...]()
        refused: Sequence[tuple[str, Review]] = ()
        if self._site.judge:
            reviews, counts, refused = screen_reviews(read, reviews, main_text=self._rules.main_text)
            # A list of other pages has no record, and counts as one.
            refused = refused or [(reason, _NO_RECORD) for reason in counts]
            text = matchable_text(read.title, ((review.title, review.body) for review in reviews))
            verdict, missing = judge_page(self.keyword_sets, text, len(reviews))
        digest = blake2b(digest_size=16)
        for body in bodies:
            digest.update(body)
        if self._deps.pseudonyms is not None:
            reviews = tuple(map(self._hide_author, reviews))
            refused = [(reason, self._hide_author(one)) for reason, one in refused]
        origin = PageOrigin(target.url, self._lease.site, self._lease.node, self._lease.attempt_id)
        return NewPage(
            lease=self._lease,
            target_id=target.id,
            url=target.url,
            key=target.key,
            title=storable(read.title),
            content_hash=digest.hexdigest(),
            encoding=encoding,
            size=sum(map(len, bodies)),
            records=records_of(origin, reviews, refused, verdict, copy_key),
            etag=_validator(headers, "etag"),
            last_modified=_validator(headers, "last-modified"),
            confidence=read.confidence,
            verdict=verdict,
            missing=" ".join(missing),
        )

    def _hide_author(self, review: Review) -> Review:
        """Return a review whose author has a pseudonym."""
        assert self._deps.pseudonyms is not None
        return review._replace(author=self._deps.pseudonyms.pseudonym(self._lease.site, review.author))

    async def _read_one(self, response: Response) -> tuple[PageRead, str]:
        now = self._deps.now().astimezone(self._zone)
        job = PageJob.from_response(
            response,
            now,
            rules=self._rules,
            hint=self._site.encoding,
            group=self._site.group,
            category=self.category,
        )
        return await self._deps.reader.read(job)

    async def _further_parts(self, first: PageRead, asked: set[str]) -> list[tuple[PageRead, bytes]]:
        """Return the parts of a review list after its first, as far as they are available."""
        parts: list[tuple[PageRead, bytes]] = []
        url = first.next_url
        while url and url not in asked and len(parts) < self._deps.settings.list_parts - 1:
            asked.add(url)
            try:
                response = await self._page(url)
                read, _ = await self._read_one(response)
            except FetchError as error:
                await self._note_error(url, error)
                break
            except WaitTooLong:
                break
            parts.append((read, response.body))
            url = read.next_url
        return parts


def _validator(headers: Mapping[str, str], name: str) -> str | None:
    """Return a validator for a conditional request; None if no database takes it as text."""
    value = headers.get(name, "")
    return value if value and value.isascii() and value.isprintable() else None


def _conditions(target: WorkTarget) -> dict[str, str]:
    conditions = {}
    if target.etag:
        conditions["If-None-Match"] = target.etag
    if target.last_modified:
        conditions["If-Modified-Since"] = target.last_modified
    return conditions


def _join_parts(reviews: tuple[Review, ...], further: tuple[Review, ...]) -> tuple[Review, ...]:
    """Reviews of two parts of a list: those that have only their place get it over the whole list."""
    keys = {review.key for review in reviews}
    joined = list(reviews)
    for review in further:
        if review.key.startswith("#"):
            # A place may be taken, because parts also count empty records.
            review = review._replace(key=_free_place(keys, len(joined)))
        if review.key not in keys:
            keys.add(review.key)
            joined.append(review)
    return tuple(joined)


def _free_place(keys: set[str], place: int) -> str:
    while f"#{place}" in keys:
        place += 1
    return f"#{place}"
