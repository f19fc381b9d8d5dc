"""Requests of the scripts of one page: fetched for its attempt, counted and timed as requests of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from tasks.domain.pages import Response
from tasks.fetching.hosts import HostCatalog
from tasks.worker.counters import Timing

RENEW_EVERY_S = 10.0
"""Seconds between renewals of a lease while a page is made: many short waits may come at once."""


class PageParts:
    """The requests of one page.

    Args:
        url: address of its document.
        fetch: fetches a part, with headers, and whether it is of the page's own host.
        timing: of the attempt; the page is in its `active`.
        announce_wait: called before waits, with seconds.
    """

    def __init__(
        self,
        url: str,
        fetch: Callable[[str, Mapping[str, str], bool], Awaitable[Response]],
        hosts: HostCatalog,
        timing: Timing,
        announce_wait: Callable[[float], None],
    ) -> None:
        self._fetch = fetch
        self._hosts = hosts
        self._host = hosts.name(url)
        self._timing = timing
        self._announce_wait = announce_wait
        self._under_way = 0
        self._now = asyncio.get_running_loop().time
        self._renewed_at = self._now()

    def is_own(self, url: str) -> bool:
        """True for a URL of the host that the document came from."""
        return self._hosts.name(url) == self._host

    async def ask(self, url: str, headers: Mapping[str, str]) -> Response:
        """Fetch one part. Raises FetchError, WaitTooLong."""
        self.renew_if_due()
        with self._active():
            return await self._fetch(url, headers, self.is_own(url))

    def renew_if_due(self) -> None:
        """Renew the lease, if the last time is a while ago."""
        if (now := self._now()) - self._renewed_at >= RENEW_EVERY_S:
            self._renewed_at = now
            self._announce_wait(2 * RENEW_EVERY_S)

    @contextmanager
    def _active(self) -> Iterator[None]:
        """Count one part under way. The first replaces the page, which waits for it; later ones also count."""
        if self._under_way:
            self._timing.active.__enter__()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if self._under_way:
                self._timing.active.__exit__()
