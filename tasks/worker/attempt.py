"""One attempt: a subtask's targets crawled on one node, from the lease to the closing report.

The way of the data: result pages -> found and hits -> pages -> reviews. Every result page and every page is stored
with its target in one transaction as soon as it is read, so that an attempt that is cut off loses only what is in
flight. A page is stored behind the attempt's back, in batches; only its end waits until all are committed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from splitter.catalog.model import Catalog

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.hit_count import Lists
from tasks.fetching.permits import WaitTooLong
from tasks.scheduling.recall import RecallSettings
from tasks.store.closing import CLOSES, AttemptReport, Close
from tasks.store.leases import START, Lease, Renewal, Work, WorkTarget
from tasks.store.pages import NewPage, TargetEnd
from tasks.store.result_pages import RESULTS, FoundHit, ReadResultPage
from tasks.store.writer import Writer
from tasks.worker.counters import AttemptCounters
from tasks.worker.ending import Ending, failure
from tasks.worker.failures import Failures
from tasks.worker.fetcher import Dependencies, Fetcher, NotAsked
from tasks.worker.lease_renewal import LeaseRenewal
from tasks.worker.page_collector import Collector
from tasks.worker.settings import MAX_TRIES
from tasks.worker.slots import Slot, Slots
from tasks.worker.timing import Timing
from tasks.worker.write_buffer import WriteBuffer


class Attempt:
    """Runs one lease to its end. Use it once.

    Args:
        writer: the process's way to the database.
        slots: those of its node; None: it has one of its own.
        on_begun: called once the database has told whether the lease is ours, and its work.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        lease: Lease,
        deps: Dependencies,
        catalog: Catalog,
        writer: Writer,
        rules: RecallSettings,
        slots: Slots | None = None,
        on_begun: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lease = lease
        self._deps = deps
        self._writer = writer
        self._keep = timedelta(seconds=rules.silent_after_s)
        self._on_begun = on_begun
        self._slot = Slot(slots or Slots(1))
        self._timing = Timing(clock, self._slot.busy, self._slot.idle)
        self._counters = AttemptCounters(self._timing)
        self._renewal = LeaseRenewal(lease, writer, self._counters, rules.silent_after_s, clock)
        fetcher = Fetcher(deps, self._timing, self._renewal.promise, lease.site)
        self._collector = Collector(lease.site, deps, catalog, fetcher, self._timing, self._met)
        self._lists = Lists.of(catalog.engine_of(lease.site))
        refresh_s = catalog.sites[lease.site].refresh_s
        self._refresh = timedelta(seconds=refresh_s) if refresh_s is not None else None
        self._judge = catalog.sites[lease.site].judge
        self._write_buffer = WriteBuffer(
            lease, deps, writer, self._counters, self._unstorable, judge=self._judge
        )
        self._failures = Failures(deps)
        self._queue: deque[WorkTarget] = deque()
        self._posted = 0  # hits that were whole posts
        self._left = 0  # targets known to be still to do
        self._note = ""
        self._full = False
        self._interrupted = ""
        self._runner: asyncio.Task[None] | None = None

    @property
    def waits(self) -> bool:
        """Whether it has worked and holds no slot now: it waits for a send time, or for the database."""
        return self._slot.waits

    @property
    def stores(self) -> bool:
        """Whether nothing of it is at a host now, nor waits for one: what is left is the database's."""
        return not self._timing.at_host

    async def run(self) -> bool:
        """Crawl, report, and close; False where the lease was not (or no longer) ours.

        Cancelling the coroutine stops it without a report: the lease then runs out and is recalled. `interrupt`
        is the orderly way.
        """
        try:
            work = await self._writer.soon(START, Renewal(self.lease, self._keep))
        finally:
            self._on_begun()
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
            finally:
                self._slot.leave()
        await self._write_buffer.emptied()
        return await self._writer.soon(CLOSES, self._close())

    def interrupt(self, why: str) -> None:
        """Stop soon, keep what is stored, and give the rest back to WAIT (the node drains or stops)."""
        self._interrupted = why
        if self._runner is not None:
            self._runner.cancel()

    async def _crawl(self, work: Work) -> None:
        await self._enter()
        self._left = len(work.targets)
        results = [t for t in work.targets if t.kind == "result"]
        self._take([t for t in work.targets if t.kind == "hit"])
        await self._read_results(results)
        room = max(0, self.lease.quota - self._posted)
        while len(self._queue) > room:
            self._queue.pop()
            self._counters.left_over += 1
        lanes = min(self._deps.settings.lanes, len(self._queue))
        async with asyncio.TaskGroup() as group:
            for _ in range(lanes):
                group.create_task(self._lane())
        self._counters.left_over += len(self._queue) if self._full else 0
        await self._write_buffer.emptied()

    async def _enter(self) -> None:
        """Wait for a slot; the lease lives on meanwhile."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._renewal.every_s):
                    await self._slot.enter()
                    return
            self._renewal.renew()

    def _take(self, hits: list[WorkTarget]) -> None:
        self._queue.extend(hits)
        self._counters.responsible += len(hits)

    # --- result pages ---------------------------------------------------------------------------------------

    async def _read_results(self, results: list[WorkTarget]) -> None:
        for place, target in enumerate(results):
            behind = [t.id for t in results[place + 1 :]]
            if self._renewal.lost or self._full or not await self._read_result(target, behind):
                return
            if behind and 0 < self.lease.quota <= self._posted:
                self._full, self._note = True, f"quota of {self.lease.quota} used up"

    async def _read_result(self, target: WorkTarget, behind: list[int]) -> bool:
        """Read one result page; True where the next one is to be read."""
        try:
            read = await self._collector.results(target.url)
        except WaitTooLong as wait:
            self._give_way(wait)
            return False
        except FetchError as error:
            self._failures.result_error = error.error
            await self._met(target.url, error)
            self._end(target, "todo", error.error, counts=not error.error.about_host)
            return False
        page = read.page
        self._failures.answered(target.url)
        seen = self._deps.seen
        asked = await seen.ask([hit.key for hit in read.hits])
        saved = await self._writer.soon(
            RESULTS,
            ReadResultPage(
                self.lease,
                target,
                page,
                [
                    FoundHit(hit.url, hit.key, new=hit.key not in asked.maybe and hit.key not in asked.sure)
                    for hit in read.hits
                ],
                past_end=[] if page.more else behind,
                more=page.more and not behind,
                refresh=self._refresh,
                lists=self._lists,
                judge=self._judge,
            ),
        )
        if saved is None:
            self._renewal.lost = True
            return False
        seen.confirmed(saved.known)
        self._left += len(saved.todo) - 1 - (0 if page.more else len(behind))
        self._counters.known += len(saved.known)
        self._take([hit for hit in saved.todo if not await self._post(hit)])
        self._renewal.alive()
        return page.more

    async def _post(self, target: WorkTarget) -> bool:
        """Store a hit that the result page holds whole; False where it is to be asked for."""
        page = self._collector.post(target)
        if page is None:
            return False
        self._posted += 1
        self._counters.responsible += 1
        self._counters.tried += 1
        await self._save(target, page)
        return True

    # --- pages ----------------------------------------------------------------------------------------------

    async def _lane(self) -> None:
        while self._queue and not (self._renewal.lost or self._full):
            if self._timing.active_s >= self.lease.budget_s:
                self._full = True
                return
            target = self._queue.popleft()
            if not self._failures.stopped(target.url):
                await self._collect(target)
                self._renewal.alive()

    async def _collect(self, target: WorkTarget) -> None:
        self._counters.tried += 1
        try:
            page = await self._collector.page(target)
        except asyncio.CancelledError:
            self._counters.tried -= 1
            raise
        except WaitTooLong as wait:
            self._counters.tried -= 1
            self._queue.append(target)
            self._give_way(wait)
            return
        except FetchError as error:
            await self._miss(target, error)
            return
        self._failures.answered(target.url)
        if page is None:
            self._counters.was_known()
            self._end(target, "stored", "unchanged", counts=False, unchanged=target.key)
            return
        await self._save(target, page)

    async def _save(self, target: WorkTarget, page: NewPage) -> None:
        self._left -= 1
        await self._write_buffer.save(target, page)

    async def _unstorable(self, target: WorkTarget, error: FetchError) -> None:
        self._left += 1
        await self._miss(target, error)

    async def _miss(self, target: WorkTarget, error: FetchError) -> None:
        kind = error.error
        self._failures.hit_errors[kind] += 1
        await self._met(target.url, error)
        if isinstance(error, NotAsked) or kind in (ErrorClass.SCHEME_REFUSED, ErrorClass.ADDRESS_REFUSED):
            self._counters.tried -= 1
            # What no node may ask is nobody's to collect.
            self._counters.responsible -= kind.final
        counts = not kind.about_host
        if kind.final:
            state = "refused"
        elif counts and target.tries + 1 >= MAX_TRIES:
            state = "given_up"
        else:
            state = "todo"
        self._end(target, state, kind, counts=counts)

    async def _met(self, url: str, error: FetchError) -> None:
        self._timing.errors[error.error] += 1
        await self._failures.met(url, error)

    def _end(
        self, target: WorkTarget, state: str, reason: str, *, counts: bool, unchanged: bytes | None = None
    ) -> None:
        if state != "todo":
            self._left -= 1
        self._write_buffer.end(TargetEnd(target.id, state, reason, counts), unchanged)

    def _give_way(self, wait: WaitTooLong) -> None:
        self._full = True
        self._note = str(wait)

    # --- the report -----------------------------------------------------------------------------------------

    def _close(self) -> Close:
        failures = self._failures
        counters = self._counters.totals(interrupted=bool(self._interrupted))
        reason = failure(
            Ending(self._counters.collected, max(0, self._left), failures.result_error, failures.hit_errors)
        )
        rests, gave = tuple(failures.rests.values()), frozenset(failures.gave)
        near = self._timing.round_trip()
        report = AttemptReport(
            counters=counters,
            reason=reason,
            rests=rests,
            last_response=failures.last,
            note=self._note,
            gave=gave,
            near=near,
        )
        if self._interrupted:
            return Close(self.lease, report, self._interrupted)
        if reason is not None and self._full and not failures.any:
            # The host is fully used by others: nobody failed.
            return Close(self.lease, report, self._note or "budget used up")
        return Close(self.lease, report)
