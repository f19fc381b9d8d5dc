"""What an attempt was responsible for and what became of it: the counts of the node-run control (DESIGN.md, 1)."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.store.leases import Counters
from tasks.worker.timing import Timing


@dataclass(slots=True)
class AttemptCounters:
    """Hits of one attempt.

    Attributes:
        responsible: it was given or found, and that were not stored already.
        tried: requested.
        collected: stored by it.
        known: stored already.
        left_over: quota, budget or a full host kept it from.
    """

    timing: Timing
    responsible: int = 0
    tried: int = 0
    collected: int = 0
    known: int = 0
    left_over: int = 0

    def was_known(self) -> None:
        """A hit that was tried turned out to be stored already."""
        self.known += 1
        self.responsible -= 1
        self.tried -= 1

    def totals(self, *, interrupted: bool) -> Counters:
        """As they stand.

        Args:
            interrupted: the attempt did not end by itself: it answers only for what it tried.
        """
        offered = self.tried if interrupted else self.responsible - self.left_over
        timing = self.timing
        return Counters(
            offered=max(offered, self.tried, self.collected),
            tried=self.tried,
            collected=self.collected,
            known=self.known,
            requests=timing.requests,
            bytes=timing.bytes,
            active_s=timing.active_s,
            wait_s=timing.wait_s,
            errors=dict(timing.errors),
        )
