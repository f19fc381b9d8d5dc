"""Statistics of a run's attempts: requests, bytes, ends, errors. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select

from tasks.store.sql.tables import attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatistics:
    """Sums over attempts.

    Attributes:
        bytes: of bodies, decompressed.
        active_s, wait_s: seconds of work, and of waiting for send permits, summed over all attempts.
        outcomes: attempts by outcome; those that run still count as "open".
        reasons: attempts that failed or were given back, by reason.
        errors: requests that gave no page, by class.
        statuses: requests by status, or by error where there was none.
    """

    requests: int = 0
    bytes: int = 0
    active_s: float = 0.0
    wait_s: float = 0.0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)


def newest_attempt(conn: Connection) -> int:
    """The highest number of an attempt; 0: there is none."""
    return conn.execute(select(func.max(attempts.c.id))).scalar_one() or 0


def run_statistics(conn: Connection, after: int) -> RunStatistics:
    """Of the attempts behind this one; of those that are open, what they last told."""
    a = attempts.c
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    sums = [0, 0, 0.0, 0.0]
    mine = a.id > after
    numbers = (func.sum(a.requests), func.sum(a.bytes), func.sum(a.active_s), func.sum(a.wait_s))
    grouped = select(a.outcome, a.reason, func.count(), *numbers).where(mine).group_by(a.outcome, a.reason)
    for outcome, reason, n, *more in conn.execute(grouped):
        outcomes[outcome or "open"] += n
        if reason is not None:
            reasons[reason] += n
        sums = [old + new for old, new in zip(sums, more, strict=True)]
    for found, answered in conn.execute(select(a.errors, a.statuses).where(mine)):
        errors.update(found)
        statuses.update(answered)
    requests, size, active_s, wait_s = sums
    return RunStatistics(
        requests=int(requests),
        bytes=int(size),
        active_s=float(active_s),
        wait_s=float(wait_s),
        outcomes=_most_first(outcomes),
        reasons=_most_first(reasons),
        errors=_most_first(errors),
        statuses=dict(sorted(statuses.items())),
    )


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return dict(counts.most_common())
