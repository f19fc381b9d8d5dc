"""The life of an attempt: granted, started, in progress, closed. Each closes once and is folded once.

The lease is in the subtask's row (token, node, deadline); the attempt's row is the node-run control.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from tasks.control import AttemptResult, Outcome
from tasks.errors import LeaseLost
from tasks.model import Reason, State
from tasks.queues import Transition
from tasks.store import stats, transitions
from tasks.store.database import insert_or
from tasks.store.tables import attempts, host_rests, pages, subtasks, targets

_FOLDED = {
    "succeeded": Outcome.SUCCEEDED,
    "failed": Outcome.FAILED,
    "silent": Outcome.SILENT,
    "released": Outcome.RELEASED,
    "cancelled": Outcome.RELEASED,  # nobody's fault either
}

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

HITS_UNREAD = 10
"""Hits a result page counts for until it is read."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A decision of allocation and modification, to be carried out.

    Attributes:
        detail: the data behind the decision, for `explain`.
    """

    subtask_id: int
    node: str
    quota: int
    budget_s: float
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lease:
    """What a node needs to start an attempt: the doorbell's message. JSON-able by `as_message`."""

    subtask_id: int
    attempt_id: int
    token: str
    node: str
    site: str
    quota: int
    budget_s: float

    def as_message(self) -> dict[str, Any]:
        """As plain JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class WorkTarget:
    """A target still to do."""

    id: int
    kind: str
    url: str
    tries: int


@dataclass(frozen=True, slots=True)
class Work:
    """What a started attempt has before it."""

    product_id: int
    task_id: int
    chunk: int
    targets: tuple[WorkTarget, ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """What an attempt has done so far; sums, in hits, seconds and bytes (DESIGN.md, 1)."""

    offered: int = 0
    tried: int = 0
    collected: int = 0
    known: int = 0
    requests: int = 0
    bytes: int = 0
    active_s: float = 0.0
    wait_s: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)


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


def grant(conn: Connection, now: datetime, grants: Iterable[Grant], start_within: timedelta) -> list[Lease]:
    """Give subtasks in WAIT to nodes; those that have left WAIT meanwhile are passed over."""
    given = []
    for wanted in grants:
        row = conn.execute(
            select(subtasks.c.site, subtasks.c.product_id, subtasks.c.round, subtasks.c.attempts)
            .where(subtasks.c.id == wanted.subtask_id, subtasks.c.state == State.WAIT)
            .with_for_update()
        ).one_or_none()
        if row is None:
            continue
        lease = _grant_one(conn, now, wanted, row, start_within)
        if lease is not None:
            given.append(lease)
    return given


def _grant_one(
    conn: Connection, now: datetime, wanted: Grant, row: Any, start_within: timedelta
) -> Lease | None:
    token = uuid.uuid4().hex
    attempt_id = conn.execute(
        insert(attempts)
        .values(
            subtask_id=wanted.subtask_id,
            product_id=row.product_id,
            no=row.attempts + 1,
            round=row.round,
            site=row.site,
            node=wanted.node,
            token=token,
            quota=wanted.quota,
            budget_s=wanted.budget_s,
            allocated_at=now,
            errors={},
        )
        .returning(attempts.c.id)
    ).scalar_one()
    moved = transitions.try_move(
        conn,
        now,
        wanted.subtask_id,
        Transition.ALLOCATE,
        transitions.Note(token, attempt_id, wanted.node, detail=wanted.detail),
        values={
            "lease_token": token,
            "lease_node": wanted.node,
            "lease_deadline": now + start_within,
            "attempt_id": attempt_id,
            "attempts": row.attempts + 1,
        },
    )
    if not moved:
        conn.execute(delete(attempts).where(attempts.c.id == attempt_id))
        return None
    return Lease(wanted.subtask_id, attempt_id, token, wanted.node, row.site, wanted.quota, wanted.budget_s)


def start(conn: Connection, now: datetime, lease: Lease, deadline: datetime) -> Work | None:
    """Begin a granted attempt; None if the lease is over, or has begun already (a doubled doorbell)."""
    row = conn.execute(
        select(subtasks.c.product_id, subtasks.c.task_id, subtasks.c.chunk)
        .where(subtasks.c.id == lease.subtask_id, subtasks.c.lease_started.is_(False))
        .with_for_update()
    ).one_or_none()
    if row is None or not transitions.renew(conn, lease.subtask_id, lease.token, now, deadline):
        return None
    conn.execute(
        update(attempts).where(attempts.c.id == lease.attempt_id).values(started_at=now, progress_at=now)
    )
    todo = conn.execute(
        select(targets.c.id, targets.c.kind, targets.c.url, targets.c.tries)
        .where(targets.c.subtask_id == lease.subtask_id, targets.c.state == "todo")
        .order_by(targets.c.id)
    )
    return Work(row.product_id, row.task_id, row.chunk, tuple(WorkTarget(*t) for t in todo))


def progress(conn: Connection, now: datetime, lease: Lease, deadline: datetime, counters: Counters) -> bool:
    """Record a sign of life; False where the lease is over: the attempt must stop."""
    if not transitions.renew(conn, lease.subtask_id, lease.token, now, deadline):
        return False
    conn.execute(
        update(attempts)
        .where(attempts.c.id == lease.attempt_id)
        .values(progress_at=now, **_columns(counters))
    )
    return True


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
        {**_columns(report.counters), "note": report.note} if report.note else _columns(report.counters),
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


def overdue(conn: Connection, now: datetime, limit: int) -> list[tuple[Lease, bool]]:
    """Leases that have run out (deadline <= now), each with whether its attempt had begun."""
    rows = conn.execute(
        select(
            subtasks.c.id,
            subtasks.c.attempt_id,
            subtasks.c.lease_token,
            subtasks.c.lease_node,
            subtasks.c.site,
            attempts.c.quota,
            attempts.c.budget_s,
            subtasks.c.lease_started,
        )
        .join(attempts, attempts.c.id == subtasks.c.attempt_id)
        .where(subtasks.c.state == State.CRAWL, subtasks.c.lease_deadline <= now)
        .order_by(subtasks.c.id)
        .limit(limit)
    )
    return [(Lease(*r[:7]), bool(r.lease_started)) for r in rows]


def left_to_do(conn: Connection, subtask_id: int) -> int:
    """Hits still to do, an unread result page counted as `HITS_UNREAD`."""
    rows = conn.execute(
        select(targets.c.kind, func.count())
        .where(targets.c.subtask_id == subtask_id, targets.c.state == "todo")
        .group_by(targets.c.kind)
    )
    return sum(n * (HITS_UNREAD if kind == "result" else 1) for kind, n in rows)


def unstarted_of(conn: Connection, node: str) -> Sequence[Lease]:
    """Leases a node holds and has not started."""
    rows = conn.execute(
        select(
            subtasks.c.id,
            subtasks.c.attempt_id,
            subtasks.c.lease_token,
            subtasks.c.lease_node,
            subtasks.c.site,
            attempts.c.quota,
            attempts.c.budget_s,
        )
        .join(attempts, attempts.c.id == subtasks.c.attempt_id)
        .where(
            subtasks.c.state == State.CRAWL,
            subtasks.c.lease_node == node,
            subtasks.c.lease_started.is_(False),
        )
    )
    return [Lease(*r) for r in rows]


def _with_failed(conn: Connection, subtask_id: int, node: str) -> list[str]:
    failed = conn.execute(select(subtasks.c.failed_on).where(subtasks.c.id == subtask_id)).scalar_one()
    return [n for n in failed if n != node] + [node]


def _storable(response: Mapping[str, Any]) -> dict[str, Any]:
    """Without the characters that PostgreSQL's JSON does not take."""
    return {
        name: _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value
        for name, value in response.items()
    }


def _columns(counters: Counters) -> dict[str, Any]:
    return {
        "offered": counters.offered,
        "tried": counters.tried,
        "collected": counters.collected,
        "known": counters.known,
        "requests": counters.requests,
        "bytes": counters.bytes,
        "active_s": round(counters.active_s, 6),
        "wait_s": round(counters.wait_s, 6),
        "errors": dict(counters.errors),
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
    values: dict[str, Any] = _columns(counters) if counters is not None else {}
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
