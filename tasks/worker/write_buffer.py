"""Pages and ended targets of an attempt on their way to the database, in batches; the attempt does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from splitter.errors import Message

from tasks.domain.errors import Unstorable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.store.content.pages import STORE_PAGES, STORE_TARGET_ENDS, NewPage, TargetEnd
from tasks.store.queue.leases import Lease, WorkTarget
from tasks.store.sql.writer import Writer
from tasks.worker.counters import AttemptCounters
from tasks.worker.fetcher import Dependencies

# The attempt waits if more of its pages are not stored yet.
_MOST_UNSAVED = 100


class WriteBuffer:
    """Pages and ended targets of one attempt that are not committed yet.

    Args:
        on_unstorable: called with a page that the database refuses for good.
    """

    def __init__(
        self,
        lease: Lease,
        deps: Dependencies,
        writer: Writer,
        counters: AttemptCounters,
        on_unstorable: Callable[[WorkTarget, FetchError], Awaitable[None]],
    ) -> None:
        self._lease = lease
        self._deps = deps
        self._writer = writer
        self._counters = counters
        self._on_unstorable = on_unstorable
        self._unsaved: dict[asyncio.Future[bool], WorkTarget] = {}
        self._ending: set[asyncio.Future[None]] = set()

    async def save(self, target: WorkTarget, page: NewPage) -> None:
        """Queue a page to be stored. Wait only if too many are not stored yet."""
        saving = self._writer.later(STORE_PAGES, page)
        self._unsaved[saving] = target
        saving.add_done_callback(lambda done: self._finish_page(done, page.key))
        if len(self._unsaved) >= _MOST_UNSAVED:
            self._writer.hurry()
            await asyncio.wait(set(self._unsaved), return_when=asyncio.FIRST_COMPLETED)

    def end(
        self, target: WorkTarget, state: str, reason: str, *, counts: bool, unchanged: bytes | None = None
    ) -> None:
        """Store that a target gave no page (`TargetEnd`); if that fails, the target is still to do."""
        end = TargetEnd(self._lease, target.id, state, reason, counts, unchanged)
        ending = self._writer.later(STORE_TARGET_ENDS, end)
        self._ending.add(ending)
        ending.add_done_callback(self._finish_target)

    async def flush(self) -> None:
        """Wait until every page, and every target that gave none, is committed.

        A page that the database refuses for good is a try that failed. Any other database error is raised.
        """
        while self._unsaved or self._ending:
            self._writer.hurry()
            # Not gather(): an interruption here must not take pages off the queue.
            waited_for: set[asyncio.Future[Any]] = {*self._unsaved, *self._ending}
            await asyncio.wait(waited_for)
            await asyncio.sleep(0)  # lets the callbacks of finished writes run
            for saving, target in list(self._unsaved.items()):
                error = saving.exception()
                if not isinstance(error, Unstorable | UnicodeError):
                    saving.result()
                    continue
                del self._unsaved[saving]
                await self._on_unstorable(
                    target,
                    FetchError(ErrorClass.BAD_CONTENT, Message("cannot be stored: {error}", error=error)),
                )

    def _finish_page(self, saving: asyncio.Future[bool], key: bytes) -> None:
        if saving.cancelled() or saving.exception() is not None:
            return  # it stays among the unsaved, for `flush`
        self._unsaved.pop(saving, None)
        self._deps.seen.add_stored([key])
        if saving.result():
            self._counters.collected += 1
        else:
            self._counters.count_known()

    def _finish_target(self, ending: asyncio.Future[None]) -> None:
        self._ending.discard(ending)
        if not ending.cancelled():
            ending.exception()
