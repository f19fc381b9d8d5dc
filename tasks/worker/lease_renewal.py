"""Renewal of an attempt's lease, with the counts so far. If the store refuses it, the lease is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from datetime import timedelta

from tasks.store.queue.leases import RENEW_LEASES, Lease, Renewal
from tasks.store.sql.writer import Writer
from tasks.worker.counters import AttemptCounters

REPORT_EVERY_S = 5.0
REPORT_SOONEST_S = 0.5
FIRST_REPORT_TRIES = 3
"""Ended tries after which an attempt reports for the first time; then whenever they have doubled."""


class LeaseRenewal:
    """Renews one lease.

    The scheduler learns from reports of running attempts, most from their first tries.

    Args:
        page_hosts: hosts that gave a page so far; it grows. A half-open breaker closes with the first one reported.
        silent_after_s: seconds without a renewal after which the lease is taken back.
        clock: monotonic seconds.

    Attributes:
        lost: True once a renewal was refused: the lease was taken back.
        every_s: seconds between two renewals.
    """

    def __init__(
        self,
        lease: Lease,
        writer: Writer,
        counters: AttemptCounters,
        page_hosts: Set[str],
        silent_after_s: float,
        clock: Callable[[], float],
    ) -> None:
        self.lost = False
        self.every_s = min(REPORT_EVERY_S, silent_after_s / 4)
        self._lease = lease
        self._writer = writer
        self._counters = counters
        self._page_hosts = page_hosts
        self._reported_hosts: frozenset[str] = frozenset()
        self._lease_for = timedelta(seconds=silent_after_s)
        self._clock = clock
        self._reported_at = clock()
        self._report_at_tries = FIRST_REPORT_TRIES

    def announce_wait(self, wait_s: float) -> None:
        """Renew before a wait that is longer than the time between two renewals."""
        if wait_s > self.every_s:
            self.renew()

    def renew_if_due(self) -> None:
        """Renew if the last time is long enough ago, or if there is much that is new."""
        ago_s = self._clock() - self._reported_at
        news = self._counters.tried - self._counters.in_flight >= self._report_at_tries
        if ago_s >= (REPORT_SOONEST_S if news else self.every_s):
            self.renew()

    def renew(self) -> None:
        """Renew now; the attempt does not wait for it."""
        self._reported_at = self._clock()
        counters = self._counters.so_far()
        self._report_at_tries = max(FIRST_REPORT_TRIES, 2 * counters.tried)
        new_hosts = frozenset(self._page_hosts) - self._reported_hosts
        self._reported_hosts |= new_hosts
        renewing = self._writer.later(
            RENEW_LEASES, Renewal(self._lease, self._lease_for, counters, new_hosts)
        )
        renewing.add_done_callback(self._finish_renewal)

    def _finish_renewal(self, renewing: asyncio.Future[bool]) -> None:
        # A database that does not answer now must not end the attempt: its pages are retried by themselves.
        if not renewing.cancelled() and renewing.exception() is None and not renewing.result():
            self.lost = True
