"""One attempt: a subtask's targets crawled on one node, from the lease to the closing report.

The way of the data: result pages -> found and hits -> pages -> reviews. Every result page and every page is stored
with its target in one transaction as soon as it is read, so that an attempt that is cut off loses only what is in
flight.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime

from splitter.catalog.model import Catalog
from sqlalchemy import Connection

from tasks.crawl.canonical import canonical, page_key
from tasks.crawl.decode import decode
from tasks.crawl.extract import read_page
from tasks.crawl.fetching import Fetcher, Kit, NotAsked, WaitTooLong
from tasks.crawl.judge import Ending, failure
from tasks.crawl.meter import Meter
from tasks.crawl.model import ErrorClass, FetchError, Response, ResultPage
from tasks.crawl.results import read_results
from tasks.crawl.settings import MAX_TRIES
from tasks.store import endings, leases
from tasks.store.endings import Report, Rest
from tasks.store.leases import Counters, Lease, Work, WorkTarget
from tasks.store.pages import (
    FoundHit,
    Hits,
    NewPage,
    TargetEnd,
    content_hash,
    end_target,
    save_page,
    save_result_page,
)
from tasks.store.writer import Writer
from tasks.strategies.recall import RecallSettings, renewed_deadline

_REPORT_EVERY_S = 5.0


class Attempt:
    """Runs one lease to its end. Use it once.

    Args:
        writer: the process's way to the database.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        lease: Lease,
        kit: Kit,
        catalog: Catalog,
        writer: Writer,
        rules: RecallSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lease = lease
        self._kit = kit
        self._catalog = catalog
        self._writer = writer
        self._rules = rules
        self._clock = clock
        self._meter = Meter(clock)
        self._fetcher = Fetcher(kit, self._meter, self._promise)
        self._queue: deque[WorkTarget] = deque()
        self._responsible = 0  # hits it was given or found, and that were not stored already
        self._tried = 0
        self._collected = 0
        self._known = 0
        self._left_over = 0  # hits quota, budget or a full host kept it from
        self._hit_errors: dict[ErrorClass, int] = {}
        self._result_error: ErrorClass | None = None
        self._stopped: set[str] = set()  # hosts not to be asked any more
        self._unanswered: dict[str, int] = {}
        self._rests: dict[str, Rest] = {}
        self._last: dict[str, object] | None = None
        self._note = ""
        self._full = False
        self._lost = False
        self._reported_at = clock()
        self._report_every_s = min(_REPORT_EVERY_S, rules.silent_after_s / 4)
        self._interrupted = ""
        self._runner: asyncio.Task[object] | None = None

    async def run(self) -> bool:
        """Crawl, report, and close; False where the lease was not (or no longer) ours.

        Cancelling the coroutine stops it without a report: the lease then runs out and is recalled. `interrupt`
        is the orderly way.
        """
        work = await self._writer.run(
            lambda conn, now: leases.start(conn, now, self.lease, self._deadline(now))
        )
        if work is None:
            return False
        if not self._interrupted:
            self._runner = asyncio.ensure_future(self._crawl(work))
            try:
                await self._runner
            except asyncio.CancelledError:
                if not self._interrupted:
                    self._runner.cancel()
                    raise
        if self._interrupted:
            return await self._writer.run(
                lambda conn, now: endings.interrupt(
                    conn, now, self.lease, self._counters(), self._interrupted
                )
            )
        return await self._writer.run(self._close)

    def interrupt(self, why: str) -> None:
        """Stop soon, keep what is stored, and give the rest back to WAIT (the node drains or stops)."""
        self._interrupted = why
        if self._runner is not None:
            self._runner.cancel()

    async def _crawl(self, work: Work) -> None:
        results = [t for t in work.targets if t.kind == "result"]
        self._take([t for t in work.targets if t.kind == "hit"])
        await self._read_results(results)
        room = max(0, self.lease.quota)
        while len(self._queue) > room:
            self._queue.pop()
            self._left_over += 1
        lanes = min(self._kit.settings.lanes, len(self._queue))
        async with asyncio.TaskGroup() as group:
            for _ in range(lanes):
                group.create_task(self._lane())
        self._left_over += len(self._queue) if self._full else 0

    def _take(self, hits: list[WorkTarget]) -> None:
        self._queue.extend(hits)
        self._responsible += len(hits)

    # --- result pages ---------------------------------------------------------------------------------------

    async def _read_results(self, results: list[WorkTarget]) -> None:
        for place, target in enumerate(results):
            behind = [t.id for t in results[place + 1 :]]
            if self._lost or self._full or not await self._read_result(target, behind):
                return

    async def _read_result(self, target: WorkTarget, behind: list[int]) -> bool:
        """Read one result page; True where the next one is to be read."""
        engine = self._catalog.engine_of(self.lease.site)
        try:
            with self._meter.active():
                response = await self._fetcher.page(target.url)
                text, _ = decode(response.body, response.headers)
                page = read_results(text, response.url, engine.results)
        except WaitTooLong as wait:
            self._give_way(wait)
            return False
        except FetchError as error:
            self._result_error = error.error
            await self._met(target.url, error)
            counts = not error.error.about_host
            end = TargetEnd(target.id, "todo", error.error, counts)
            await self._writer.run(lambda conn, _now: end_target(conn, self.lease, end))
            return False
        hits = _found_hits(page)
        more = page.more and not behind

        def save(conn: Connection, now: datetime) -> Hits:
            return save_result_page(
                conn,
                now,
                self.lease,
                target,
                page,
                hits,
                past_end=[] if page.more else behind,
                more=more,
            )

        saved = await self._writer.run(save)
        self._take(list(saved.todo))
        self._known += saved.known
        await self._alive()
        return page.more

    # --- pages ----------------------------------------------------------------------------------------------

    async def _lane(self) -> None:
        while self._queue and not (self._lost or self._full):
            if self._meter.active_s >= self.lease.budget_s:
                self._full = True
                return
            target = self._queue.popleft()
            if self._kit.hosts.name(target.url) not in self._stopped:
                await self._collect(target)
                await self._alive()

    async def _collect(self, target: WorkTarget) -> None:
        self._tried += 1
        try:
            with self._meter.active():
                response = await self._fetcher.page(target.url)
                page = self._read(target, response)
        except asyncio.CancelledError:
            self._tried -= 1
            raise
        except WaitTooLong as wait:
            self._tried -= 1
            self._queue.append(target)
            self._give_way(wait)
            return
        except FetchError as error:
            await self._miss(target, error)
            return
        self._unanswered.pop(self._kit.hosts.name(target.url), None)
        stored = await self._writer.run(lambda conn, now: save_page(conn, now, self.lease, page))
        if stored:
            self._collected += 1
        else:
            self._known += 1
            self._responsible -= 1
            self._tried -= 1

    def _read(self, target: WorkTarget, response: Response) -> NewPage:
        text, encoding = decode(response.body, response.headers)
        now = self._kit.now()
        read = read_page(text, response.url, self._catalog.rules_of(self.lease.site), now=now)
        return NewPage(
            target.id,
            canonical(target.url),
            page_key(target.url),
            read.title,
            content_hash(text),
            encoding,
            len(response.body),
            read.reviews,
        )

    async def _miss(self, target: WorkTarget, error: FetchError) -> None:
        kind = error.error
        self._hit_errors[kind] = self._hit_errors.get(kind, 0) + 1
        await self._met(target.url, error)
        if isinstance(error, NotAsked) or kind in (ErrorClass.SCHEME_REFUSED, ErrorClass.ADDRESS_REFUSED):
            self._tried -= 1
            # What no node may ask is nobody's to collect.
            self._responsible -= kind.final
        counts = not kind.about_host
        if kind.final:
            state = "refused"
        elif counts and target.tries + 1 >= MAX_TRIES:
            state = "given_up"
        else:
            state = "todo"
        end = TargetEnd(target.id, state, kind, counts)
        await self._writer.run(lambda conn, _now: end_target(conn, self.lease, end))

    async def _met(self, url: str, error: FetchError) -> None:
        """Remember an error, and what it says about its host."""
        kind = error.error
        self._meter.errors[kind] += 1
        self._last = _last_response(url, error)
        host = self._kit.hosts.name(url)
        if kind.blocks:
            settings = self._kit.settings
            asked_s = error.retry_after_s if error.retry_after_s is not None else settings.rest_s[kind]
            self._stopped.add(host)
            rest_s = max(1.0, asked_s) * settings.rest_factor
            self._rests[host] = Rest(host, kind, rest_s)
            # Other attempts of this node at that host find out here; other decisions from the store.
            await self._kit.send_times.push_back(host, self._kit.address, rest_s)
        elif kind in (ErrorClass.CONNECT, ErrorClass.TIMEOUT):
            self._unanswered[host] = self._unanswered.get(host, 0) + 1
            if self._unanswered[host] >= self._kit.settings.unreachable_after:
                self._stopped.add(host)
        else:
            self._unanswered.pop(host, None)

    def _give_way(self, wait: WaitTooLong) -> None:
        self._full = True
        self._note = str(wait)

    # --- sign of life, report -------------------------------------------------------------------------------

    def _promise(self, wait_s: float) -> None:
        if wait_s > self._report_every_s:
            self._renew()

    async def _alive(self) -> None:
        if self._clock() - self._reported_at < self._report_every_s:
            return
        if not await asyncio.wrap_future(self._renew()):
            self._lost = True

    def _renew(self) -> Future[bool]:
        self._reported_at = self._clock()
        counters = self._counters()
        return self._writer.submit(
            lambda conn, now: leases.progress(conn, now, self.lease, self._deadline(now), counters)
        )

    def _deadline(self, now: datetime) -> datetime:
        return renewed_deadline(now, self._rules)

    def _counters(self) -> Counters:
        offered = self._tried if self._interrupted else self._responsible - self._left_over
        return Counters(
            offered=max(offered, self._tried, self._collected),
            tried=self._tried,
            collected=self._collected,
            known=self._known,
            requests=self._meter.requests,
            bytes=self._meter.bytes,
            active_s=self._meter.active_s,
            wait_s=self._meter.wait_s,
            errors=dict(self._meter.errors),
        )

    def _close(self, conn: Connection, now: datetime) -> bool:
        left = leases.left_to_do(conn, self.lease.subtask_id)
        reason = failure(Ending(self._collected, left, self._result_error, self._hit_errors))
        nothing_wrong = self._result_error is None and not self._hit_errors
        if reason is not None and self._full and nothing_wrong:
            # The host is fully used by others: nobody failed.
            return endings.interrupt(conn, now, self.lease, self._counters(), self._note or "budget used up")
        return endings.close(
            conn,
            now,
            self.lease,
            Report(self._counters(), reason, tuple(self._rests.values()), self._last, self._note),
        )


def _found_hits(page: ResultPage) -> list[FoundHit]:
    """A result page's hits by their canonical addresses, each once; addresses that cannot be asked are left out."""
    found: dict[bytes, FoundHit] = {}
    for hit in page.hits:
        try:
            key = page_key(hit.url)
            found.setdefault(key, FoundHit(canonical(hit.url), key))
        except FetchError:
            continue
    return list(found.values())


def _last_response(url: str, error: FetchError) -> dict[str, object]:
    last: dict[str, object] = {"url": url, "error": error.error.value, "detail": error.detail[:500]}
    if error.response is not None:
        text, _ = decode(error.response.body[:4000], error.response.headers)
        last |= {"status": error.response.status, "url": error.response.url, "head": text[:1000]}
    return last
