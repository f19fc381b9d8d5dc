"""The row of an attempt at its end, and its share of the statistics: each attempt ends once and is added once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, func, select

from tasks.domain.failures import FailureReason
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult
from tasks.scheduling.proximity.response_times import RoundTrip
from tasks.scheduling.unasked import UnaskedHost
from tasks.store import stats
from tasks.store.hosts import Rest
from tasks.store.leases import Counters
from tasks.store.prepared import Prepared, update_each
from tasks.store.tables import attempts, pages

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """How an attempt ended, as its node reports it.

    Attributes:
        reason: None = it succeeded.
        rests: hosts that refused the node's address, or did not answer it.
        last_response: the last response, for `failed show`: url, status, head of the body.
        page_hosts: hosts that gave it a page.
        round_trip: to its site; None: too few of its requests were answered.
        answered: True where a request of it was answered, by any host.
        unasked: the host that it could not ask, where it ended because of that alone.
    """

    counters: Counters
    reason: FailureReason | None = None
    rests: tuple[Rest, ...] = ()
    last_response: Mapping[str, Any] | None = None
    note: str = ""
    page_hosts: frozenset[str] = frozenset()
    round_trip: RoundTrip | None = None
    answered: bool = False
    unasked: UnaskedHost | None = None

    def __str__(self) -> str:
        """For the log."""
        did, how = self.counters, self.reason or self.note or "ended"
        return (
            f"{how}; {did.collected} of {did.offered} hits stored, {did.requests} requests, "
            f"{did.active_s:.1f} s active, {did.wait_s:.1f} s waited"
        )


def _storable(response: Mapping[str, Any]) -> dict[str, Any]:
    """Without the characters that PostgreSQL's JSON does not take."""
    return {
        name: _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value
        for name, value in response.items()
    }


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt at its end.

    Attributes:
        report: of its node; None: the counters of its last sign of life stand.
        reason: where there is no report.
        lost_s: seconds lost to silence.
    """

    attempt_id: int
    outcome: str
    report: AttemptReport | None = None
    reason: FailureReason | None = None
    lost_s: float = 0.0


def end_attempts(conn: Connection, now: datetime, ended: Sequence[Ended]) -> None:
    """Close the rows of attempts that are open, and add them to their pairs' statistics, exactly once."""
    if not ended:
        return
    by_id = {end.attempt_id: end for end in ended}
    rows = {row.id: row for row in _OPEN.rows(conn, {"ids": list(by_id)})}
    if not rows:
        return
    # The pages that are stored count, whatever the node had time to report.
    stored = _COLLECTED.rows(conn, {"ids": list(rows)})
    collected = {row.attempt_id: row.stored for row in stored}
    # In the order in which they ended: older ones count less.
    changes = {
        attempt_id: _closed_columns(end, rows[attempt_id], collected.get(attempt_id, 0))
        for attempt_id, end in by_id.items()
        if attempt_id in rows
    }
    rows_to_close = [{"id": attempt_id, **change} for attempt_id, change in changes.items()]
    update_each(conn, attempts, ("id",), rows_to_close, ended_at=now)
    folds = []
    for attempt_id, change in changes.items():
        report = by_id[attempt_id].report
        round_trip = report.round_trip if report is not None else None
        result = _result(rows[attempt_id], change)
        folds.append(stats.Fold(result, change["wait_s"], change["requests"], round_trip))
    stats.fold_many(conn, now, folds)


_ids = bindparam("ids", expanding=True, type_=BigInteger())
_COUNTED = tuple(Counters().columns())
_OPEN = Prepared(
    select(*(attempts.c[name] for name in ("id", "site", "node", *_COUNTED)))
    .where(attempts.c.id.in_(_ids), attempts.c.outcome.is_(None))
    .order_by(attempts.c.id)
    .with_for_update()
)
_COLLECTED = Prepared(
    select(pages.c.attempt_id, func.count().label("stored"))
    .where(pages.c.attempt_id.in_(_ids), pages.c.late.is_(False))
    .group_by(pages.c.attempt_id)
)


def _closed_columns(end: Ended, row: Any, collected: int) -> dict[str, Any]:
    """Columns of an attempt's row that its end changes."""
    counted = {name: getattr(row, name) for name in _COUNTED}
    reason, last_response = end.reason, None
    if end.report is not None:
        counted = end.report.counters.columns()
        if end.outcome != AttemptOutcome.RELEASED:
            reason, last_response = end.report.reason, end.report.last_response
    return {
        **counted,
        "collected": collected,
        "tried": max(counted["tried"], collected),
        "offered": max(counted["offered"], collected),
        "outcome": end.outcome,
        "reason": reason,
        "last_response": _storable(last_response) if last_response is not None else None,
        "lost_s": end.lost_s,
    }


def _result(row: Any, closed: Mapping[str, Any]) -> AttemptResult:
    """A closed attempt as the statistics count it: a cancelled one like a released one."""
    outcome = closed["outcome"]
    return AttemptResult(
        site=row.site,
        node=row.node,
        outcome=AttemptOutcome.RELEASED if outcome == "cancelled" else AttemptOutcome(outcome),
        **{name: closed[name] for name in ("offered", "tried", "collected", "active_s", "lost_s")},
    )
