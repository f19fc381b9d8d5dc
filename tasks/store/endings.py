"""The end of an attempt: closed by its node, released, interrupted, silent, or cancelled.

Each ends once, and is folded into the (site, node) statistics once, in the transaction that moves its subtask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from tasks.domain.failures import FailureReason
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult
from tasks.domain.states import Transition
from tasks.scheduling.proximity.moving import RoundTrip
from tasks.store import stats, transitions
from tasks.store.hosts import Rest, recovered, rest_host
from tasks.store.leases import Counters, Lease, left_to_do
from tasks.store.statement_batch import later
from tasks.store.tables import attempts, pages, subtasks
from tasks.store.transitions import Move
from tasks.store.writer import BatchOperation

_FOLDED = {
    "succeeded": AttemptOutcome.SUCCEEDED,
    "failed": AttemptOutcome.FAILED,
    "silent": AttemptOutcome.SILENT,
    "released": AttemptOutcome.RELEASED,
    "cancelled": AttemptOutcome.RELEASED,  # nobody's fault either
}

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended, by its own account.

    Attributes:
        reason: None = it succeeded.
        rests: hosts that refused the node's address.
        last_response: what came last, for `failed show`: url, status, head of the body.
        gave: hosts that gave it a page.
        near: how far its site was; None: too few of its requests were answered.
    """

    counters: Counters
    reason: FailureReason | None = None
    rests: tuple[Rest, ...] = ()
    last_response: Mapping[str, Any] | None = None
    note: str = ""
    gave: frozenset[str] = frozenset()
    near: RoundTrip | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """An attempt that ends by its own account.

    Attributes:
        given_back: why it gives the rest back to WAIT without a recall (drain, shutdown, nothing left of the host);
            None: it succeeded or failed, as the report says.
    """

    lease: Lease
    report: Report
    given_back: str | None = None

    @property
    def transition(self) -> Transition:
        """Where its subtask goes."""
        if self.given_back is not None:
            return Transition.RELEASE
        return Transition.SUCCEED if self.report.reason is None else Transition.FAIL


def close_many(conn: Connection, now: datetime, items: Sequence[Close]) -> list[bool]:
    """End attempts by their own account: subtasks, control, statistics and rests in one transaction.

    Returns:
        False where the lease was lost before: then nothing but `late` pages is its doing, and nothing changes.
    """
    tokens: dict[int, set[str]] = {}
    for item in items:
        tokens.setdefault(item.lease.subtask_id, set()).add(item.lease.token)
    mine = transitions.in_force(conn, tokens, subtasks.c.failed_on)
    first: dict[tuple[int, str], Close] = {}
    for item in items:
        if _owned(item.lease) in mine:
            first.setdefault(_owned(item.lease), item)
    ours = list(first.values())
    left = left_to_do(conn, [item.lease.subtask_id for item in ours])
    by_transition: dict[Transition, list[Move]] = {}
    for item in ours:
        lease = item.lease
        values: dict[str, Any] = {"left": left[lease.subtask_id]}
        if item.transition is Transition.FAIL:
            failed_on = mine[_owned(lease)].failed_on
            values["reason"] = item.report.reason
            values["failed_on"] = [n for n in failed_on if n != lease.node] + [lease.node]
        move = Move(lease.subtask_id, _note(item), values, lease.token)
        by_transition.setdefault(item.transition, []).append(move)
    for transition, moves in by_transition.items():
        transitions.move_many(conn, now, transition, moves)
    _end_many(conn, now, [_ended(item) for item in ours])
    recovered(conn, now, {(host, item.lease.node) for item in ours for host in item.report.gave})
    for item in ours:
        for rest in item.report.rests:
            rest_host(conn, now, item.lease.node, rest)
    return [first.get(_owned(item.lease)) is item for item in items]


CLOSES: BatchOperation[Close, bool] = BatchOperation(6, close_many)


def _owned(lease: Lease) -> tuple[int, str]:
    return lease.subtask_id, lease.token


def _note(item: Close) -> transitions.Note:
    lease, report = item.lease, item.report
    if item.given_back is not None:
        return transitions.Note(lease.token, lease.attempt_id, lease.node, detail={"why": item.given_back})
    detail = report.counters.columns()
    if report.note:
        detail["note"] = report.note
    return transitions.Note(lease.token, lease.attempt_id, lease.node, report.reason, detail)


def _ended(item: Close) -> _Ended:
    report = item.report
    last = _storable(report.last_response) if report.last_response is not None else None
    if item.given_back is not None:
        return _Ended(item.lease.attempt_id, "released", counters=report.counters, near=report.near)
    outcome = "succeeded" if report.reason is None else "failed"
    return _Ended(item.lease.attempt_id, outcome, report.reason, report.counters, last, near=report.near)


def release(conn: Connection, now: datetime, lease: Lease, why: str) -> bool:
    """Give a lease back that was not started: to WAIT without a recall; False if it is over or has begun."""
    return bool(release_many(conn, now, {lease: why}))


def release_many(conn: Connection, now: datetime, given_back: Mapping[Lease, str]) -> list[Lease]:
    """`release` many, each with why; those that were given back."""
    tokens: dict[int, set[str]] = {}
    for lease in given_back:
        tokens.setdefault(lease.subtask_id, set()).add(lease.token)
    mine = transitions.in_force(conn, tokens, subtasks.c.lease_started)
    released = [
        lease
        for lease in given_back
        if (row := mine.get(_owned(lease))) is not None and not row.lease_started
    ]
    moves = []
    for lease in released:
        why = {"why": given_back[lease]}
        note = transitions.Note(lease.token, lease.attempt_id, lease.node, detail=why)
        moves.append(Move(lease.subtask_id, note, {}, lease.token))
    transitions.move_many(conn, now, Transition.RELEASE, moves)
    _end_many(conn, now, [_Ended(lease.attempt_id, "released", counters=Counters()) for lease in released])
    return released


def silence(conn: Connection, now: datetime, lease: Lease, reason: FailureReason) -> bool:
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
            "left": left_to_do(conn, [lease.subtask_id])[lease.subtask_id],
        },
    ):
        return False
    _end(conn, now, _Ended(lease.attempt_id, "silent", reason, lost_s=lost_s))
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
        _end(conn, now, _Ended(attempt_id, "cancelled"))


def _with_failed(conn: Connection, subtask_id: int, node: str) -> list[str]:
    failed = conn.execute(select(subtasks.c.failed_on).where(subtasks.c.id == subtask_id)).scalar_one()
    return [n for n in failed if n != node] + [node]


def _storable(response: Mapping[str, Any]) -> dict[str, Any]:
    """Without the characters that PostgreSQL's JSON does not take."""
    return {
        name: _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value
        for name, value in response.items()
    }


@dataclass(frozen=True, slots=True)
class _Ended:
    """The row of an attempt at its end.

    Attributes:
        counters: by the node's own account; None: nobody told, what the last sign of life said stands.
        lost_s: seconds lost to silence.
        near: how far its site was, if that was measured.
    """

    attempt_id: int
    outcome: str
    reason: FailureReason | None = None
    counters: Counters | None = None
    last_response: Mapping[str, Any] | None = None
    lost_s: float = 0.0
    near: RoundTrip | None = None


def _end_many(conn: Connection, now: datetime, ended: Sequence[_Ended]) -> None:
    """Close the rows of attempts that are open, and fold them into the pairs' statistics, exactly once."""
    if not ended:
        return
    of = {end.attempt_id: end for end in ended}
    rows = {
        row.id: row
        for row in conn.execute(
            select(attempts)
            .where(attempts.c.id.in_(of), attempts.c.outcome.is_(None))
            .order_by(attempts.c.id)
            .with_for_update()
        )
    }
    if not rows:
        return
    # What is stored is what counts, whatever the node had time to report.
    stored = conn.execute(
        select(pages.c.attempt_id, func.count())
        .where(pages.c.attempt_id.in_(rows), pages.c.late.is_(False))
        .group_by(pages.c.attempt_id)
    )
    collected = {attempt_id: n for attempt_id, n in stored}  # noqa: C416 - rows are no pairs to mypy
    folds = []
    changes = []
    # In the order in which they ended: what is older counts less.
    for attempt_id in (one for one in of if one in rows):
        change, fold = _closed(of[attempt_id], rows[attempt_id], collected.get(attempt_id, 0))
        changes.append(change)
        folds.append(fold)
    named = {
        name: bindparam(f"new_{name}", type_=attempts.c[name].type) for name in changes[0] if name != "of"
    }
    later(
        conn,
        update(attempts).where(attempts.c.id == bindparam("of")).values(ended_at=now, **named),
        [{"of": c["of"], **{f"new_{name}": c[name] for name in named}} for c in changes],
    )
    stats.fold_many(conn, now, folds)


def _closed(end: _Ended, row: Row[Any], collected: int) -> tuple[dict[str, Any], stats.Fold]:
    """Columns of an attempt's closed row (``of``: its id), and what it adds to the statistics."""
    counted = (
        end.counters.columns()
        if end.counters is not None
        else {name: row._mapping[name] for name in _COUNTED}
    )
    counted["collected"] = collected
    counted["tried"] = max(counted["tried"], collected)
    counted["offered"] = max(counted["offered"], collected)
    result = AttemptResult(
        site=row.site,
        node=row.node,
        outcome=_FOLDED[end.outcome],
        offered=counted["offered"],
        tried=counted["tried"],
        collected=collected,
        active_s=counted["active_s"],
        lost_s=end.lost_s,
    )
    change = {
        "of": end.attempt_id,
        "outcome": end.outcome,
        "reason": end.reason,
        "last_response": end.last_response,
        "lost_s": end.lost_s,
        **counted,
    }
    return change, stats.Fold(result, counted["wait_s"], end.near)


_COUNTED = tuple(Counters().columns())


def _end(conn: Connection, now: datetime, ended: _Ended) -> None:
    _end_many(conn, now, [ended])
