"""One attempt: a subtask's targets crawled on one node, from the lease to the closing report.

Result pages give the number of hits found and the hits; hits give pages with reviews. Every result page and every page
is stored with its target in one transaction as soon as it is read, so that an attempt that is cut off loses only what
is in flight. Pages are stored in batches while the attempt goes on; only its end waits until all are committed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from splitter.catalog.model import Catalog

from tasks.domain.attempt_end import AttemptReport, UnaskedHost
from tasks.domain.failures import FailureReason, FetchError
from tasks.domain.grants import HostGrants
from tasks.domain.hit_count import EngineLimits
from tasks.domain.reasons import Explanation, Reason, because
from tasks.fetching.permits import WaitTooLong
from tasks.scheduling.after_attempt import after_attempt
from tasks.scheduling.recall import RecallSettings
from tasks.store.content.pages import STORE_RESULT_PAGES, NewPage
from tasks.store.queue.attempts import CLOSE_ATTEMPTS, Close
from tasks.store.queue.leases import BEGIN_LEASES, Lease, Renewal, Work, WorkTarget
from tasks.store.queue.result_pages import FoundHit, ResultPageToStore
from tasks.store.sql.writer import Writer
from tasks.worker.counters import AttemptCounters, Timing
from tasks.worker.failures import Failures, failure_reason
from tasks.worker.fetcher import Dependencies, Fetcher, HostStopped
from tasks.worker.lease_renewal import LeaseRenewal
from tasks.worker.page_collector import PageCollector
from tasks.worker.slots import Slots, SlotUse
from tasks.worker.tries import Tries
from tasks.worker.write_buffer import WriteBuffer

log = logging.getLogger("reviewloop.attempt")


class Attempt:
    """Runs one lease to its end. Use it once.

    Args:
        writer: of the process.
        slots: of its node; None: it has one of its own.
        on_begun: called once the store has answered whether the lease is valid, with the targets of the lease.
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
        self._rules = rules
        self._lease_for = timedelta(seconds=rules.silent_after_s)
        self._on_begun = on_begun
        self._slot = SlotUse(slots or Slots(1))
        self._timing = Timing(clock, self._slot.busy, self._slot.idle)
        self._counters = AttemptCounters(timing=self._timing)
        self._failures = Failures(deps)
        self._renewal = LeaseRenewal(
            lease, writer, self._counters, self._failures.page_hosts, rules.silent_after_s, clock
        )
        announce = self._renewal.announce_wait
        fetcher = Fetcher(deps, self._timing, announce, lease.site, lease, self._failures.avoids)
        self._limits = EngineLimits.for_engine(catalog.engine_of(lease.site))
        refresh_s = catalog.sites[lease.site].refresh_s
        self._refresh = timedelta(seconds=refresh_s) if refresh_s is not None else None
        self._write_buffer = WriteBuffer(lease, deps, writer, self._counters, self._unstorable)
        self._tries = Tries(lease.floor, self._counters, self._failures, self._write_buffer)
        self._collector = PageCollector(lease, deps, catalog, fetcher, self._timing, self._tries.note)
        self._queue: deque[WorkTarget] = deque()
        self._whole_posts = 0  # hits that their result page held as whole posts
        self._note: Explanation | None = None
        self._limit_reached = False
        self._lanes = 0  # that may still be opened
        self._too_long: WaitTooLong | None = None  # the shortest
        self._too_far: set[str] = set()  # hosts that are left to another attempt
        self._interrupted: Explanation | None = None
        self._runner: asyncio.Task[None] | None = None

    @property
    def waits(self) -> bool:
        """True while it has begun to work but holds no slot: it waits for a permit or for the database."""
        return self._slot.waits

    @property
    def stores(self) -> bool:
        """True while it has no request in flight and waits for no permit: only the database is left."""
        return not self._timing.under_way

    async def run(self) -> bool:
        """Crawl, report, and close. Return False if the lease was not (or no longer) ours.

        Cancelling the coroutine stops it without a report: the lease then runs out and is recalled. `interrupt`
        is the orderly way.
        """
        try:
            work = await self._writer.soon(BEGIN_LEASES, Renewal(self.lease, self._lease_for))
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
        await self._write_buffer.flush()
        close = await self._close()
        log.info(
            "subtask %d, attempt %d on %s at %s: %s",
            *(self.lease.subtask_id, self.lease.attempt_id, self.lease.node, self.lease.site),
            self._interrupted or close.report,
            extra={"subtask": self.lease.subtask_id, "attempt": self.lease.attempt_id},
        )
        return await self._writer.soon(CLOSE_ATTEMPTS, close)

    def interrupt(self, why: Explanation) -> None:
        """Stop soon, keep what is stored, and give the rest back to WAIT (the node drains or stops)."""
        self._interrupted = why
        if self._runner is not None:
            self._runner.cancel()

    async def _crawl(self, work: Work) -> None:
        await self._enter()
        self._collector.keyword_sets = work.keyword_sets
        self._collector.category = work.category
        self._tries.left = len(work.targets)
        results = [t for t in work.targets if t.kind == "result"]
        self._add_hits([t for t in work.targets if t.kind == "hit"])
        await self._read_result_pages(results)
        most = max(0, self.lease.quota - self._whole_posts)
        while len(self._queue) > most:
            self._queue.pop()
            self._counters.left_over += 1
        self._lanes = min(self._deps.settings.lanes, len(self._queue))
        try:
            async with asyncio.TaskGroup() as self._group:
                self._open_lanes(self.lease.floor.tries_without_page or self._lanes)
        finally:
            self._tries.settle()
        self._counters.left_over += len(self._queue) if self._limit_reached else 0
        await self._write_buffer.flush()

    async def _enter(self) -> None:
        """Wait for a slot; the lease is renewed meanwhile."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._renewal.every_s):
                    await self._slot.enter()
                    return
            self._renewal.renew()

    def _add_hits(self, hits: list[WorkTarget]) -> None:
        self._queue.extend(hits)
        self._counters.responsible += len(hits)

    # --- result pages ---------------------------------------------------------------------------------------

    async def _read_result_pages(self, results: list[WorkTarget]) -> None:
        for place, target in enumerate(results):
            behind = [later.id for later in results[place + 1 :]]
            if self._renewal.lost or self._limit_reached or not await self._read_result_page(target, behind):
                return
            if behind and 0 < self.lease.quota <= self._whole_posts:
                self._limit_reached = True
                self._note = because(Reason.QUOTA_USED, quota=self.lease.quota)

    async def _read_result_page(self, target: WorkTarget, behind: list[int]) -> bool:
        """Read one result page and return True if the next one should be read."""
        try:
            read = await self._collector.results(target.url)
        except WaitTooLong as wait:
            # The hits that are there may be of other hosts.
            self._leave_host(target.url, wait)
            return False
        except FetchError as error:
            self._failures.result_error = error.error
            await self._tries.note(target.url, error)
            self._tries.end(target, "todo", error.error, counts=not error.error.facts.about_host)
            return False
        page = read.page
        self._failures.note_page(target.url)
        seen = self._deps.seen
        stored = await seen.look_up([hit.key for hit in read.hits])
        saved = await self._writer.soon(
            STORE_RESULT_PAGES,
            ResultPageToStore(
                lease=self.lease,
                target=target,
                page=page,
                hits=[
                    FoundHit(hit.url, hit.key, new=hit.key not in stored.maybe and hit.key not in stored.sure)
                    for hit in read.hits
                ],
                past_end=[] if page.more else behind,
                more=page.more and not behind,
                refresh=self._refresh,
                limits=self._limits,
            ),
        )
        if saved is None:
            self._renewal.lost = True
            return False
        seen.confirm(saved.known)
        self._tries.left += len(saved.todo) - 1 - (0 if page.more else len(behind))
        self._counters.known += len(saved.known)
        self._add_hits([hit for hit in saved.todo if not await self._store_post(hit)])
        self._renewal.renew_if_due()
        return page.more

    async def _store_post(self, target: WorkTarget) -> bool:
        """Store a hit that the result page holds as a whole post. Return False if the hit must be requested."""
        page = self._collector.post(target)
        if page is None:
            return False
        self._whole_posts += 1
        self._counters.responsible += 1
        self._counters.tried += 1
        await self._save(target, page)
        return True

    # --- pages ----------------------------------------------------------------------------------------------

    def _open_lanes(self, count: int) -> None:
        """Open `count` more lanes, at most all. Begin with as many as failures end the attempt; each page opens one."""
        for _ in range(min(count, self._lanes)):
            self._lanes -= 1
            self._group.create_task(self._lane())

    async def _lane(self) -> None:
        while self._queue and not (self._renewal.lost or self._limit_reached):
            if self._tries.awaited:
                self._lanes += 1
                return
            if self._timing.active_s >= self.lease.budget_s:
                self._limit_reached = True
                return
            target = self._queue.popleft()
            if self._too_far and self._deps.hosts.name(target.url) in self._too_far:
                self._counters.left_over += 1
            elif not self._failures.avoids(target.url):
                with suppress(HostStopped):
                    await self._collect(target)
                self._renewal.renew_if_due()

    async def _collect(self, target: WorkTarget) -> None:
        self._counters.tried += 1
        self._counters.in_flight += 1
        failure: FetchError | None = None
        try:
            page = await self._collector.page(target)
        except (asyncio.CancelledError, HostStopped):
            self._counters.tried -= 1
            raise
        except WaitTooLong as wait:
            self._counters.tried -= 1
            self._counters.left_over += 1
            self._leave_host(target.url, wait)
            return
        except FetchError as error:
            failure = error
        finally:
            self._counters.in_flight -= 1
        if failure is not None:
            await self._tries.record_failure(target, failure)
            if self._queue and self._tries.below_floor:
                self._limit_reached = True
                self._note = because(Reason.FEW_PAGES)
            return
        self._open_lanes(1)
        self._failures.note_page(target.url)
        if page is None:
            self._counters.count_known()
            self._tries.end(target, "stored", "unchanged", counts=False, unchanged=target.key)
            return
        await self._save(target, page)

    async def _save(self, target: WorkTarget, page: NewPage) -> None:
        self._tries.left -= 1
        await self._write_buffer.save(target, page)

    async def _unstorable(self, target: WorkTarget, error: FetchError) -> None:
        self._tries.left += 1
        await self._tries.record_failure(target, error)

    def _leave_host(self, url: str, wait: WaitTooLong) -> None:
        """Ask no more of a target's host, or of the one that it led to, if that may not be asked soon."""
        self._too_far |= {self._deps.hosts.name(url), wait.host}
        if self._too_long is None or wait.wait_s < self._too_long.wait_s:
            self._too_long = wait
            self._note = because(Reason.PERMIT_TOO_FAR, host=wait.host, wait_s=wait.wait_s)

    # --- the report -----------------------------------------------------------------------------------------

    async def _close(self) -> Close:
        failures = self._failures
        reason = failure_reason(
            collected=self._counters.collected,
            left=max(0, self._tries.left),
            result_error=failures.result_error,
            hit_errors=failures.hit_errors,
        )
        given_back = self._interrupted
        is_cut_short = self._limit_reached or self._too_long is not None
        if not self._interrupted and reason is not None and is_cut_short and not failures.any:
            # The permits of the host go to others: that is no failure.
            given_back = self._note or because(Reason.BUDGET_USED)
        report = AttemptReport(
            counters=self._counters.totals(interrupted=bool(self._interrupted)),
            reason=reason,
            given_back=given_back,
            rests=tuple(failures.rests.values()),
            last_response=failures.last_response,
            note=self._note,
            page_hosts=frozenset(failures.page_hosts),
            round_trip=self._timing.round_trip(),
            answered=self._timing.answers > 0,
            unasked=await self._find_unasked_host(reason) if not self._interrupted else None,
        )
        decide = partial(after_attempt, rules=self._rules, wait_factor=self._deps.settings.rest_factor)
        return Close(self.lease, report, decide)

    async def _find_unasked_host(self, reason: FailureReason | None) -> UnaskedHost | None:
        """Return the host that could not be asked, if the attempt ended for that reason alone."""
        unreachable = self._failures.unreachable
        too_long = self._too_long if not self._failures.any else None
        if reason is None or (unreachable is None and too_long is None):
            return None
        host = unreachable or (too_long.host if too_long is not None else "")
        grants = (await self._deps.permits.get_grants([host])).get(host, HostGrants())
        return UnaskedHost(
            host=host,
            unreachable=unreachable is not None,
            grants=grants,
            silent_after_s=self._rules.node_silent_after_s,
        )
