"""A promise that was not kept, as every proof tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept.

    Attributes:
        kind: queue, chain, transition, recalls, lease, attempt, counters, statistics, twice, lost or parts.
        subtask_id: whose it is; None where it is no single subtask's.
        message: which rows, what they say, and what would be right.
    """

    kind: str
    subtask_id: int | None
    message: str
