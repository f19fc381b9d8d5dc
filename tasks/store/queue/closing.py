"""The end of an attempt: closed by its node, released before it began, silent, or cancelled.

Each attempt ends once, and its share of the statistics is added once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tasks.domain.failures import FailureReason
from tasks.domain.host_wait import NO_PERMIT, UNREACHABLE, HostWait
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult, RoundTrip
from tasks.domain.states import Transition
from tasks.scheduling import unasked
from tasks.scheduling.unasked import NodeAccess, UnaskedHost
from tasks.store.queue import nodes, stats, transitions
from tasks.store.queue.hosts import Breaker, Rest, close_breakers, list_rests, rest_for_all, rest_host
from tasks.store.queue.leases import Counters, Lease, list_open, lock_leased
from tasks.store.queue.tasks import count_left
from tasks.store.queue.transitions import LOCKED, LOCKED_IF_FREE, Move
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation


@dataclass(frozen=True, slots=True)
class Close:
    """An attempt whose node closes it.

    Attributes:
        given_back: why the rest goes back to WAIT without a recall (drain, shutdown, nothing left of the host);
            None: it succeeded or failed, see the report.
    """

    lease: Lease
    report: AttemptReport
    given_back: str | None = None


def close_many(tx: Transaction, items: Sequence[Close]) -> list[bool]:
    """Close attempts as their nodes report: subtasks, attempts, statistics and host rests in one transaction.

    Returns:
        False where the lease was lost before: nothing changes then.
    """
    rows = lock_leased(tx, _Closing, _CLOSING, (item.lease for item in items))
    first: dict[str, Close] = {}
    for item in items:
        if item.lease.token in rows:
            first.setdefault(item.lease.token, item)
    closed = list(first.values())
    left = count_left(tx, [item.lease.subtask_id for item in closed])
    close_breakers(tx, {(host, item.lease.node) for item in closed for host in item.report.page_hosts})
    for item in closed:
        for rest in item.report.rests:
            rest_host(tx, item.lease.node, rest)
    ends = _ends(tx, closed, rows)
    moves: dict[Transition, list[Move]] = {}
    for item, end in zip(closed, ends, strict=True):
        values = {"left": left[item.lease.subtask_id], **end.values}
        moves.setdefault(_TRANSITION[end.outcome], []).append(_move(item.lease, values, **end.event))
    for transition, its in moves.items():
        transitions.move(tx, transition, its)
    ended = zip(closed, ends, strict=True)
    end_attempts(tx, [Ended(item.lease.attempt_id, end.outcome, item.report) for item, end in ended])
    return [first.get(item.lease.token) is item for item in items]


class _Closing(NamedTuple):
    id: int
    lease_token: str
    failed_on: list[str]
    kind: str
    assigned_node: str | None
    not_before: datetime | None
    idle_releases: int


_CLOSING = f"""
    SELECT id, lease_token, failed_on, kind, assigned_node, not_before, idle_releases FROM subtasks WHERE {LOCKED}
"""
_TRANSITION = {
    AttemptOutcome.RELEASED: Transition.RELEASE,
    AttemptOutcome.SUCCEEDED: Transition.SUCCEED,
    AttemptOutcome.FAILED: Transition.FAIL,
}
CLOSE_ATTEMPTS: BatchOperation[Close, bool] = BatchOperation(6, close_many)


@dataclass(frozen=True, slots=True)
class _End:
    """How an attempt ended.

    Attributes:
        values: columns of its subtask to set.
        event: reason and detail of the event that closes it.
    """

    outcome: AttemptOutcome
    values: Mapping[str, Any]
    event: Mapping[str, Any]


def _ends(tx: Transaction, closed: Sequence[Close], rows: Mapping[str, _Closing]) -> list[_End]:
    """Return how each attempt ended; if its host could not be asked, that depends on the other nodes."""
    hosts = {one.host for item in closed if (one := item.report.unasked) is not None}
    rests = {(one.host, one.node): one for one in list_rests(tx)} if hosts else {}
    for item in closed:
        if _rest_if_unanswered(tx, item, rows[item.lease.token], rests):
            rests = {(one.host, one.node): one for one in list_rests(tx)}
    ends = []
    for item in closed:
        row, report = rows[item.lease.token], item.report
        if report.unasked is not None:
            accesses = _accesses(tx, row, report.unasked, rests)
            ends.append(_end_without_request(tx.now, item, row, report.unasked, accesses, rests))
        elif item.given_back is not None:
            ends.append(_end_of_release(item, row, why=item.given_back))
        elif report.reason is None:
            event = {"reason": None, "detail": _event_detail(report)}
            ends.append(_End(AttemptOutcome.SUCCEEDED, {"idle_releases": 0}, event))
        else:
            ends.append(_end_of_failure(item, row, 0 if report.answered else row.idle_releases))
    return ends


def _rest_if_unanswered(
    tx: Transaction, item: Close, row: _Closing, rests: Mapping[tuple[str, str], Breaker]
) -> bool:
    """Let a host rest for all nodes if it answered none of those that may ask it; return True if so."""
    host = item.report.unasked
    if host is None or not host.unreachable or row.assigned_node is not None:
        return False
    accesses = _accesses(tx, row, host, rests)
    if not all(one.unanswered for one in accesses):
        return False
    for rest in item.report.rests:
        if rest.host == host.host:
            rest_for_all(tx, item.lease.node, [one.node for one in accesses], rest)
    return True


def _end_of_release(item: Close, row: _Closing, **detail: Any) -> _End:
    """Return the end of an attempt that its node gave back: its subtask may be granted again at once."""
    idle = 0 if item.report.answered else row.idle_releases
    values = {"idle_releases": idle, "not_before": row.not_before, **transitions.NO_WAIT}
    return _End(AttemptOutcome.RELEASED, values, {"detail": {**detail, "idle_releases": idle}})


def _end_of_failure(item: Close, row: _Closing, idle: int) -> _End:
    values = {"idle_releases": idle, **_failure(row, item.lease, item.report.reason)}
    detail = {**_event_detail(item.report), "idle_releases": idle}
    return _End(AttemptOutcome.FAILED, values, {"reason": item.report.reason, "detail": detail})


def _end_without_request(
    now: datetime,
    item: Close,
    row: _Closing,
    host: UnaskedHost,
    accesses: Sequence[NodeAccess],
    rests: Mapping[tuple[str, str], Breaker],
) -> _End:
    """Return the end of an attempt whose host could not be asked (decided in `tasks.scheduling.unasked`)."""
    idle = 0 if item.report.answered else row.idle_releases + 1
    if host.unreachable and (
        not host.settings.enabled
        or idle >= host.settings.most_unanswered
        or unasked.answers_nobody([one.times for one in accesses], host.settings)
        or unasked.another_could(item.lease.node, accesses)
    ):
        return _end_of_failure(item, row, idle)
    wait_s = unasked.wait_s(accesses, idle, host.factor)
    rest = rests.get((host.host, item.lease.node))
    cause = rest.cause if rest is not None and rest.until > now else NO_PERMIT
    waits = HostWait(host.host, UNREACHABLE if host.unreachable else cause)
    values = {
        "idle_releases": idle,
        "not_before": now + timedelta(seconds=wait_s) if wait_s > 0.0 else row.not_before,
        **({"wait_host": waits.host, "wait_reason": waits.cause} if wait_s > 0.0 else transitions.NO_WAIT),
    }
    why = str(waits) if host.unreachable else item.given_back
    waited_for = [waits.host, waits.cause] if wait_s > 0.0 else None
    detail = {"why": why, "delay_s": wait_s, "idle_releases": idle, "waits_for": waited_for}
    return _End(AttemptOutcome.RELEASED, values, {"detail": detail})


def _accesses(
    tx: Transaction,
    row: _Closing,
    host: UnaskedHost,
    rests: Mapping[tuple[str, str], Breaker],
) -> list[NodeAccess]:
    """When each live node that may take the subtask could ask the host."""
    accesses = []
    for node in nodes.list_live(tx, timedelta(seconds=host.settings.node_silent_after_s)):
        if row.kind not in node.kinds or row.assigned_node not in (None, node.name):
            continue
        rest = rests.get((host.host, node.name))
        unanswered = rest.unanswered if rest is not None else 0
        granted = host.grants.of(node.permit_address).next_s
        accesses.append(
            NodeAccess(
                node=node.name,
                rest_s=max(0.0, (rest.until - tx.now).total_seconds()) if rest is not None else 0.0,
                unanswered=unanswered > 0,
                times=unanswered,
                permit_s=max(granted, host.grants.next_s),
            )
        )
    return accesses


def _event_detail(report: AttemptReport) -> dict[str, Any]:
    """Return an attempt's counters and note, in the form of its event's detail."""
    return report.counters.columns() | ({"note": report.note} if report.note else {})


def release(tx: Transaction, given_back: Mapping[Lease, str], *, skip_locked: bool = False) -> list[Lease]:
    """Move leases that have not begun back to WAIT without a recall.

    Args:
        given_back: each lease with the reason, for the event log.
        skip_locked: pass over those that another transaction has locked (`transitions.LOCKED_IF_FREE`).

    Returns:
        Those that were released: not the ones that are over or have begun.
    """
    rows = lock_leased(tx, _LeaseRow, _BEGUN_IF_FREE if skip_locked else _BEGUN, given_back)
    released = [one for one in given_back if one.token in rows and not rows[one.token].lease_started]
    moves = [_move(lease, {}, detail={"why": given_back[lease]}) for lease in released]
    transitions.move(tx, Transition.RELEASE, moves)
    nothing = AttemptReport(counters=Counters())
    end_attempts(tx, [Ended(one.attempt_id, "released", nothing) for one in released])
    return released


class _LeaseRow(NamedTuple):
    id: int
    lease_token: str
    lease_started: bool


_BEGUN = f"SELECT id, lease_token, lease_started FROM subtasks WHERE {LOCKED}"
_BEGUN_IF_FREE = f"SELECT id, lease_token, lease_started FROM subtasks WHERE {LOCKED_IF_FREE}"


def release_leases(tx: Transaction, node: str | None, why: str) -> int:
    """Move the leases of a process that is gone back to WAIT, begun or not, without a recall; returns how many.

    Args:
        node: whose; None: of every node (one process runs them all).
        why: for the event log.
    """
    open_ones = list_open(tx, node)
    rows = lock_leased(tx, _LeaseRow, _BEGUN, open_ones)
    gone = [lease for lease in open_ones if lease.token in rows]
    left = count_left(tx, [lease.subtask_id for lease in gone])
    moves = [_move(lease, {"left": left[lease.subtask_id]}, detail={"why": why}) for lease in gone]
    transitions.move(tx, Transition.RELEASE, moves)
    end_attempts(tx, [Ended(lease.attempt_id, "released") for lease in gone])
    return len(gone)


def silence(tx: Transaction, overdue: Mapping[Lease, FailureReason]) -> list[Lease]:
    """Take back leases that ran out, each with its reason: CRAWL to FAILED, attempts closed as silent.

    Returns:
        Those that were taken back: not the ones that are over, nor those renewed since `leases.overdue` read them, nor
        those that another transaction has locked: it may be renewing them, or closing.
    """
    rows = lock_leased(tx, _Overdue, _OVERDUE, overdue)
    silent = [one for one in overdue if one.token in rows and rows[one.token].lease_deadline <= tx.now]
    if not silent:
        return []
    signs = tx.records(_LastSign, _LAST_SIGNS, ids=[lease.attempt_id for lease in silent])
    last_sign = {row.id: row.at for row in signs}
    left = count_left(tx, [lease.subtask_id for lease in silent])
    moves, ended = [], []
    for lease in silent:
        reason = overdue[lease]
        lost_s = (tx.now - last_sign[lease.attempt_id]).total_seconds()
        values = {"left": left[lease.subtask_id], **_failure(rows[lease.token], lease, reason)}
        moves.append(_move(lease, values, reason=reason, detail={"silent_s": lost_s}))
        ended.append(Ended(lease.attempt_id, "silent", reason=reason, lost_s=lost_s))
    transitions.move(tx, Transition.SILENT, moves)
    end_attempts(tx, ended)
    return silent


class _LastSign(NamedTuple):
    id: int
    at: datetime


_LAST_SIGNS = "SELECT id, coalesce(progress_at, allocated_at) AS at FROM attempts WHERE id IN :ids"


class _Overdue(NamedTuple):
    id: int
    lease_token: str
    lease_deadline: datetime
    failed_on: list[str]


_OVERDUE = f"SELECT id, lease_token, lease_deadline, failed_on FROM subtasks WHERE {LOCKED_IF_FREE}"


def cancel(tx: Transaction, subtask_id: int, why: str) -> None:
    """Cancel a subtask for good, from any queue but DONE; an attempt that runs is closed as cancelled.

    Raises:
        IllegalTransition: it is DONE or CANCELLED.
        UnknownSubtask: there is no such subtask.
    """
    attempt_id = transitions.cancel(tx, subtask_id, why)
    if attempt_id is not None:
        end_attempts(tx, [Ended(attempt_id, "cancelled")])


def _move(lease: Lease, values: Mapping[str, Any], **event: Any) -> Move:
    """Return the transition of a subtask whose lease ends."""
    return Move(lease.subtask_id, values, lease.token, lease.attempt_id, lease.node, **event)


def _failure(row: _Closing | _Overdue, lease: Lease, reason: FailureReason | None) -> dict[str, Any]:
    """Return the columns of a subtask that failed: its node is now the last of those it failed on."""
    return {"reason": reason, "failed_on": [n for n in row.failed_on if n != lease.node] + [lease.node]}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """How an attempt ended, as its node reports it.

    Attributes:
        reason: None = it succeeded.
        rests: hosts that refused the node's address, or did not answer it.
        last_response: the last response, for `failed show`: url, status, head of the body.
        page_hosts: hosts that gave it a page.
        round_trip: to its site; None: too few of its requests were answered.
        answered: True if any host answered one of its requests.
        unasked: the host that it could not ask, if it ended because of that alone.
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
        """Return a line for the log."""
        did, how = self.counters, self.reason or self.note or "ended"
        return (
            f"{how}; {did.collected} of {did.offered} hits stored, {did.requests} requests, "
            f"{did.active_s:.1f} s active, {did.wait_s:.1f} s waited"
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt at its end.

    Attributes:
        report: the report of its node; if `None`, the counters of its last sign of life count.
        reason: why it ended, if there is no report.
        lost_s: seconds lost to silence.
    """

    attempt_id: int
    outcome: str
    report: AttemptReport | None = None
    reason: FailureReason | None = None
    lost_s: float = 0.0


def end_attempts(tx: Transaction, ended: Sequence[Ended]) -> None:
    """Close the rows of attempts that are open, and add them to their pairs' statistics, exactly once."""
    if not ended:
        return
    by_id = {end.attempt_id: end for end in ended}
    rows = {row.id: row for row in tx.records(_OpenAttempt, _OPEN, ids=list(by_id))}
    if not rows:
        return
    # The stored pages count, even those that the node had no time to report.
    collected = dict(tx.rows(_COLLECTED, ids=list(rows)))
    # In the order of their ends: older ones count less.
    changes = {
        attempt_id: _final_columns(end, rows[attempt_id], collected.get(attempt_id, 0))
        for attempt_id, end in by_id.items()
        if attempt_id in rows
    }
    closed = [{"id": attempt_id, **change} for attempt_id, change in changes.items()]
    tx.update("attempts", ("id",), closed, shared={"ended_at": tx.now})
    folds = []
    for attempt_id, change in changes.items():
        report = by_id[attempt_id].report
        round_trip = report.round_trip if report is not None else None
        result = _result(rows[attempt_id], change)
        folds.append(stats.Fold(result, change["wait_s"], change["requests"], round_trip))
    stats.fold_many(tx, folds)


class _OpenAttempt(NamedTuple):
    id: int
    site: str
    node: str
    offered: int
    tried: int
    collected: int
    known: int
    requests: int
    bytes: int
    active_s: float
    wait_s: float
    errors: dict[str, int]
    statuses: dict[str, int]


_COUNTED = tuple(Counters().columns())
_OPEN = f"""
    SELECT id, site, node, {", ".join(_COUNTED)} FROM attempts WHERE id IN :ids AND outcome IS NULL
    ORDER BY id FOR UPDATE
"""
_COLLECTED = (
    "SELECT attempt_id, count(*) FROM pages WHERE attempt_id IN :ids AND NOT late GROUP BY attempt_id"
)


def _final_columns(end: Ended, row: _OpenAttempt, collected: int) -> dict[str, Any]:
    """Return the columns of an attempt's row that its end changes."""
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
        "last_response": last_response,
        "lost_s": end.lost_s,
    }


def _result(row: _OpenAttempt, closed: Mapping[str, Any]) -> AttemptResult:
    """A closed attempt as the statistics count it: a cancelled one like a released one."""
    outcome = closed["outcome"]
    return AttemptResult(
        site=row.site,
        node=row.node,
        outcome=AttemptOutcome.RELEASED if outcome == "cancelled" else AttemptOutcome(outcome),
        **{name: closed[name] for name in ("offered", "tried", "collected", "active_s", "lost_s")},
    )
