"""The targets of one attempt: how many are left, how each try of one ends, and when the attempt should end early."""

from __future__ import annotations

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.page_floor import PageFloor
from tasks.store.queue.leases import WorkTarget
from tasks.worker.counters import AttemptCounters
from tasks.worker.failures import Failures
from tasks.worker.fetcher import NotAsked
from tasks.worker.write_buffer import WriteBuffer

MAX_TRIES = 3
"""Tries of one target before it is given up."""


class Tries:
    """Counts tries, and stores the outcome of their targets.

    Attributes:
        left: targets still to do, as far as known.
        below_floor: the attempt makes fewer pages of its requests than another node would.
    """

    def __init__(
        self, floor: PageFloor, counters: AttemptCounters, failures: Failures, buffer: WriteBuffer
    ) -> None:
        self._floor = floor
        self._counters = counters
        self._failures = failures
        self._buffer = buffer
        self._faults: list[tuple[WorkTarget, ErrorClass]] = []  # held until it is known whose they are
        self.left = 0
        self.below_floor = False

    @property
    def awaited(self) -> bool:
        """True while requests in flight, if they all failed, would end an attempt that has no page yet."""
        counters, most = self._counters, self._floor.tries_without_page
        return (
            most is not None
            and counters.in_flight > 0
            and counters.tried >= most
            and counters.tried == counters.in_flight + counters.failed
        )

    async def record_failure(self, target: WorkTarget, error: FetchError) -> None:
        """Record that a try of a hit gave no page."""
        kind = error.error
        self._failures.hit_errors.add(kind)
        await self.note(target.url, error)
        counters = self._counters
        if isinstance(error, NotAsked) or kind.facts.is_refused_here:
            counters.tried -= 1
            # A target that no node may request is not offered.
            counters.responsible -= kind.facts.final
        else:
            counters.failed += 1
            ended = counters.tried - counters.in_flight
            self.below_floor |= self._floor.is_missed(ended, ended - counters.failed)
        if kind.facts.is_fault_of_pair and self._floor.least_share:
            self._faults.append((target, kind))
        else:
            self._end_try(target, kind, counts=not kind.facts.about_host)

    def settle(self) -> None:
        """Store the faults that were held. Below the floor the pair fails for every target, so they are no evidence
        against the target."""
        for target, kind in self._faults:
            self._end_try(target, kind, counts=not self.below_floor)
        self._faults.clear()

    def end(
        self, target: WorkTarget, state: str, reason: str, *, counts: bool, unchanged: bytes | None = None
    ) -> None:
        """Store that a target gave no page.

        Args:
            counts: it is a try of the target.
            unchanged: key of a known page that has not changed.
        """
        if state != "todo":
            self.left -= 1
        self._buffer.end(target, state, reason, counts=counts, unchanged=unchanged)

    async def note(self, url: str, error: FetchError) -> None:
        """Count an error, and let its host rest if the error calls for that."""
        self._counters.errors[error.error] += 1
        await self._failures.note_error(url, error)

    def _end_try(self, target: WorkTarget, kind: ErrorClass, *, counts: bool) -> None:
        if kind.facts.final:
            state = "refused"
        elif counts and target.tries + 1 >= MAX_TRIES:
            state = "given_up"
        else:
            state = "todo"
        self.end(target, state, kind, counts=counts)
