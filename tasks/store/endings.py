"""The end of an attempt: closed by its node, released, interrupted, silent, or cancelled.

Each ends once, and is folded into the (site, node) statistics once, in the transaction that moves its subtask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, select, update

from tasks.control import AttemptResult, Outcome
from tasks.errors import LeaseLost
from tasks.model import Reason
from tasks.queues import Transition
from tasks.store import stats, transitions
from tasks.store.database import insert_or
from tasks.store.leases import Counters, Lease, left_to_do
from tasks.store.tables import attempts, host_rests, pages, subtasks

_FOLDED = {
    "succeeded": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
    "silent": Outcome.SILENT,
    "released": Outcome.RELEASED,
    "cancelled": Outcome.RELEASED,  # nobody's fault either
}

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Rest:
    """A host that refuses this node's address: leave it alone for so long."""

    host: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended, by its own account.

    Attributes:
        reason: None = it succeeded.
        last_response: what came last, for `failed show`: url, status, head of the body.
    """

    counters: Counters
    reason: Reason | None = None
    rests: tuple[Rest, ...] = ()
    last_response: Mapping[str, Any] | None = None
    note: str = ""


def close(conn: Connection, now: datetime, lease: Lease, report: Report) -> bool:
    """End an attempt by its own account: subtask, control, statistics and rests in one transaction.

    Returns:
        False where the lease was lost before: then nothing but `late` pages is its doing, and nothing changes.
    """
    note = transitions.Note(
        lease.token,
        lease.attempt_id,
        lease.node,
        report.reason,
        {**report.counters.columns(), "note": report.note} if report.note else report.counters.columns(),
    )
    transition = Transition.SUCCEED if report.reason is None else Transition.FAIL
    values: dict[str, Any] = {"left": left_to_do(conn, lease.subtask_id)}
    if report.reason is not None:
        values["reason"] = report.reason
        values["failed_on"] = _with_failed(conn, lease.subtask_id, lease.node)
    try:
        transitions.move(conn, now, lease.subtask_id, transition, note, token=lease.token, values=values)
    except LeaseLost:
        return False
    outcome = "succeeded" if report.reason is None else "failed"
    last = _storable(report.last_response) if report.last_response is not None else None
    _end(conn, now, lease.attempt_id, outcome, report.reason, report.counters, last)
    for rest in report.rests:
        rest_host(conn, now, lease.node, rest)
    return True


def release(conn: Connection, now: datetime, lease: Lease, why: str) -> bool:
    """Give a lease back that was not started: to WAIT without a recall; False if it is over or has begun."""
    row = conn.execute(
        select(subtasks.c.lease_started)
        .where(subtasks.c.id == lease.subtask_id, subtasks.c.lease_token == lease.token)
        .with_for_update()
    ).one_or_none()
    if row is None or row.lease_started:
        return False
    note = transitions.Note(lease.token, lease.attempt_id, lease.node, detail={"why": why})
    if not transitions.try_move(conn, now, lease.subtask_id, Transition.RELEASE, note, token=lease.token):
        return False
    _end(conn, now, lease.attempt_id, "released", None, Counters(), None)
    return True


def interrupt(conn: Connection, now: datetime, lease: Lease, counters: Counters, why: str) -> bool:
    """Give a started lease back because its node stops (drain, shutdown): to WAIT without a recall.

    What was collected counts; what was not tried is left for the next attempt.
    """
    note = transitions.Note(lease.token, lease.attempt_id, lease.node, detail={"why": why})
    if not transitions.try_move(
        conn,
        now,
        lease.subtask_id,
        Transition.RELEASE,
        note,
        token=lease.token,
        values={"left": left_to_do(conn, lease.subtask_id)},
    ):
        return False
    _end(conn, now, lease.attempt_id, "released", None, counters, None)
    return True


def silence(conn: Connection, now: datetime, lease: Lease, reason: Reason) -> bool:
    """Take back a lease that ran out: CRAWL to FAILED; the attempt is closed as silent.

    Returns:
        False where it is over already, or its node renewed it since `overdue` saw it.
    """
    ran_out = conn.execute(
        select(subtasks.c.id)
        .where(
            subtasks.c.id == lease.subtask_id,
            subtasks.c.lease_token == lease.token,
            subtasks.c.lease_deadline <= now,
        )
        .with_for_update()
    ).one_or_none()
    if ran_out is None:
        return False
    row = conn.execute(
        select(attempts.c.progress_at, attempts.c.allocated_at).where(attempts.c.id == lease.attempt_id)
    ).one()
    lost_s = (now - (row.progress_at or row.allocated_at)).total_seconds()
    note = transitions.Note(lease.token, lease.attempt_id, lease.node, reason, {"silent_s": lost_s})
    if not transitions.try_move(
        conn,
        now,
        lease.subtask_id,
        Transition.SILENT,
        note,
        token=lease.token,
        values={
            "reason": reason,
            "failed_on": _with_failed(conn, lease.subtask_id, lease.node),
            "left": left_to_do(conn, lease.subtask_id),
        },
    ):
        return False
    _end(conn, now, lease.attempt_id, "silent", reason, None, None, lost_s)
    return True


def cancel(conn: Connection, now: datetime, subtask_id: int, why: str) -> None:
    """Cancel a subtask; an attempt that runs is closed as cancelled.

    Raises:
        IllegalTransition: it is DONE or CANCELLED.
        UnknownSubtask: there is no such subtask.
    """
    attempt_id = conn.execute(
        select(subtasks.c.attempt_id).where(subtasks.c.id == subtask_id).with_for_update()
    ).scalar_one_or_none()
    transitions.cancel(
        conn,
        now,
        subtask_id,
        transitions.Note(attempt_id=attempt_id, reason="cancelled", detail={"why": why}),
    )
    if attempt_id is not None:
        _end(conn, now, attempt_id, "cancelled", None, None, None)


def rest_host(conn: Connection, now: datetime, node: str, rest: Rest) -> None:
    """Let a host rest for a node's address; a longer rest that is on already stays."""
    until = now + timedelta(seconds=rest.seconds)
    statement = insert_or(conn.dialect, host_rests).values(
        host=rest.host, node=node, cause=rest.cause, until=until, times=1
    )
    conn.execute(
        statement.on_conflict_do_update(
            index_elements=[host_rests.c.host, host_rests.c.node],
            set_={"cause": rest.cause, "until": until, "times": host_rests.c.times + 1},
            where=host_rests.c.until < until,
        )
    )


def _with_failed(conn: Connection, subtask_id: int, node: str) -> list[str]:
    failed = conn.execute(select(subtasks.c.failed_on).where(subtasks.c.id == subtask_id)).scalar_one()
    return [n for n in failed if n != node] + [node]


def _storable(response: Mapping[str, Any]) -> dict[str, Any]:
    """Without the characters that PostgreSQL's JSON does not take."""
    return {
        name: _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value
        for name, value in response.items()
    }


def _end(
    conn: Connection,
    now: datetime,
    attempt_id: int,
    outcome: str,
    reason: Reason | None,
    counters: Counters | None,
    last_response: Mapping[str, Any] | None,
    lost_s: float = 0.0,
) -> None:
    """Close the attempt's row and fold it into the pair's statistics, exactly once."""
    values: dict[str, Any] = counters.columns() if counters is not None else {}
    # What is stored is what counts, whatever the node had time to report.
    values["collected"] = conn.execute(
        select(func.count())
        .select_from(pages)
        .where(pages.c.attempt_id == attempt_id, pages.c.late.is_(False))
    ).scalar_one()
    closed = conn.execute(
        update(attempts)
        .where(attempts.c.id == attempt_id, attempts.c.outcome.is_(None))
        .values(
            ended_at=now, outcome=outcome, reason=reason, last_response=last_response, lost_s=lost_s, **values
        )
    )
    if closed.rowcount != 1:
        return
    row = conn.execute(select(attempts).where(attempts.c.id == attempt_id)).one()
    offered = max(row.offered, row.collected)
    tried = max(row.tried, row.collected)
    if (offered, tried) != (row.offered, row.tried):
        conn.execute(update(attempts).where(attempts.c.id == attempt_id).values(offered=offered, tried=tried))
    result = AttemptResult(
        site=row.site,
        node=row.node,
        outcome=_FOLDED[outcome],
        offered=offered,
        tried=tried,
        collected=row.collected,
        active_s=row.active_s,
        lost_s=lost_s,
    )
    stats.fold_attempt(conn, now, result, wait_s=row.wait_s)
