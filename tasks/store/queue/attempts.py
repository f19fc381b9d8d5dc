"""The end of an attempt: closed by its node, released before it began, silent, or cancelled; and the sums of its pair.

Each attempt ends once. The same transaction moves its subtask and adds it to the sums of its (site, node).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tasks.domain.attempt_end import AttemptEnd, AttemptFacts, AttemptReport, Decide
from tasks.domain.breaker import Breaker
from tasks.domain.failures import FailureReason
from tasks.domain.pair_stats import MEMORY, SUMS, AttemptOutcome, AttemptResult, PairStats, RoundTrip
from tasks.domain.reasons import Explanation, as_document
from tasks.domain.states import State, Transition
from tasks.store.queue import hosts, nodes, transitions
from tasks.store.queue.leases import Lease, lock_leased
from tasks.store.queue.tasks import count_left
from tasks.store.queue.transitions import LockedSubtask, Move
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import BatchOperation


@dataclass(frozen=True, slots=True)
class Close:
    """An attempt whose node closes it.

    Attributes:
        decide: what becomes of it, by facts of this transaction (`tasks.scheduling.after_attempt`).
    """

    lease: Lease
    report: AttemptReport
    decide: Decide


def close_many(tx: Transaction, items: Sequence[Close]) -> list[bool]:
    """Close attempts as their nodes report: subtasks, attempts, statistics and rests of hosts in one transaction.

    Returns:
        False if the lease was lost before: then nothing changes.
    """
    locked = lock_leased(tx, [item.lease for item in items])
    closed: dict[Lease, Close] = {}
    for item in items:
        if item.lease in locked:
            closed.setdefault(item.lease, item)
    gave_pages = {(host, lease.node) for lease, item in closed.items() for host in item.report.page_hosts}
    hosts.close_breakers(tx, gave_pages)
    refusals = [(lease.node, rest) for lease, item in closed.items() for rest in item.report.rests]
    unasked = [item.report.unasked for item in closed.values() if item.report.unasked is not None]
    rests = hosts.rest_hosts(tx, refusals, {one.host for one in unasked})
    live: list[nodes.Node] = []
    if unasked:
        live = nodes.list_live(tx, timedelta(seconds=max(one.silent_after_s for one in unasked)))
    ended: list[_Ended] = []
    changed: dict[tuple[str, str], Breaker] = {}
    for lease, item in closed.items():
        row = locked[lease]
        able = [one for one in live if row.kind in one.kinds and row.assigned_node in (None, one.name)]
        facts = AttemptFacts(
            at=tx.now,
            node=lease.node,
            unanswered=row.idle_releases,
            is_assigned=row.assigned_node is not None,
            addresses={one.name: one.permit_address for one in able},
            rests=rests | changed,
        )
        end = item.decide(item.report, facts)
        changed |= {(one.host, one.node): one for one in end.rests}
        ended.append((row, end, item.report))
    hosts.store_rests(tx, changed.values())
    _end_all(tx, ended)
    return [closed.get(item.lease) is item for item in items]


CLOSE_ATTEMPTS: BatchOperation[Close, bool] = BatchOperation(6, close_many)


def release(tx: Transaction, given_back: Mapping[Lease, Explanation], *, skip_locked: bool = False) -> int:
    """Move leases that have not begun, and are not over, back to WAIT without a recall; return how many.

    Args:
        given_back: each lease with the reason.
        skip_locked: pass over those that another transaction has locked.
    """
    locked = lock_leased(tx, given_back, skip_locked=skip_locked)
    ends = {lease: AttemptEnd(AttemptOutcome.RELEASED, because=why) for lease, why in given_back.items()}
    return _end_all(tx, [(row, ends[lease], None) for lease, row in locked.items() if not row.lease_started])


def release_leases(tx: Transaction, node: str | None, why: Explanation) -> int:
    """Move the leases of a process that is gone back to WAIT, begun or not, without a recall; return how many.

    Args:
        node: whose; None: of every node (one process runs them all).
    """
    gone = tx.records(LockedSubtask, _OF_NODE, node=node)
    return _end_all(tx, [(row, AttemptEnd(AttemptOutcome.RELEASED, because=why), None) for row in gone])


_OF_NODE = f"""
    {transitions.SUBTASKS} WHERE state = '{State.CRAWL}' AND (CAST(:node AS text) IS NULL OR lease_node = :node)
    ORDER BY id FOR UPDATE
"""


def silence(tx: Transaction, overdue: Mapping[Lease, FailureReason]) -> int:
    """Take back leases that ran out, each with its reason: CRAWL to FAILED, attempts closed as silent.

    Leases that are over, or were renewed since `leases.list_overdue` read them, are left as they are, and so are those
    that another transaction has locked: it may be renewing or closing them.

    Returns:
        How many were taken back.
    """
    locked = lock_leased(tx, overdue, skip_locked=True)
    ends = {lease: AttemptEnd(AttemptOutcome.SILENT, reason) for lease, reason in overdue.items()}
    silent = [(lease, row) for lease, row in locked.items() if (row.lease_deadline or tx.now) <= tx.now]
    return _end_all(tx, [(row, ends[lease], None) for lease, row in silent])


def cancel(tx: Transaction, subtask_id: int, why: Explanation) -> None:
    """Cancel a subtask for good, from any queue but DONE; an attempt that runs is closed as cancelled.

    Raises:
        IllegalTransition: it is DONE or CANCELLED.
        UnknownSubtask: there is no such subtask.
    """
    row = transitions.lock_one(tx, subtask_id)
    if row.state is State.CRAWL:
        _end_all(tx, [(row, AttemptEnd(AttemptOutcome.CANCELLED, because=why), None)])
    else:
        one = Move(subtask_id, transitions.NO_WAIT, reason="cancelled", detail={"because": as_document(why)})
        transitions.move(tx, Transition.CANCEL, [one], row.state)


_Ended = tuple[LockedSubtask, AttemptEnd, AttemptReport | None]
"""An attempt that ends; without a report the counters of its last sign of life count."""

TRANSITIONS = {
    AttemptOutcome.SUCCEEDED: Transition.SUCCEED,
    AttemptOutcome.FAILED: Transition.FAIL,
    AttemptOutcome.SILENT: Transition.SILENT,
    AttemptOutcome.RELEASED: Transition.RELEASE,
    AttemptOutcome.CANCELLED: Transition.CANCEL,
}
"""The transition of a subtask whose attempt ends so."""


def _end_all(tx: Transaction, ended: Sequence[_Ended]) -> int:
    """End attempts: move their subtasks, close their rows, add them to the sums of their pairs; return how many."""
    if not ended:
        return 0
    left = count_left(tx, [row.id for row, _, _ in ended])
    numbers = [row.attempt_id for row, _, _ in ended]
    attempts = {one.id: one for one in tx.records(_OpenAttempt, _OPEN, ids=numbers)}
    moves: dict[Transition, list[Move]] = defaultdict(list)
    closed, results = [], []
    for row, end, report in ended:
        attempt, counters, told, lost_s = attempts.get(row.attempt_id or 0), {}, {}, 0.0
        if report is not None:
            counters, told = report.counters.columns(), {"last_response": report.last_response}
        if attempt is not None:  # as ever, unless rows were changed by hand
            if report is not None:
                # As they are stored, so that the sums are those of the rows.
                counted = {name: counters[name] for name in _COUNTED}
                attempt = replace(attempt, round_trip=report.round_trip, **counted)
            result = _close(tx.now, attempt, end)
            results.append(result)
            columns = {name: getattr(result, name) for name in _CLOSED}
            closed.append({"reason": end.reason, **told, **counters, **columns})
            lost_s = result.lost_s
        move = _move(tx.now, row, end, left[row.id], counters, lost_s)
        moves[TRANSITIONS[end.outcome]].append(move)
    for transition, its in moves.items():
        transitions.move(tx, transition, its, State.CRAWL)
    tx.update("attempts", ("id",), closed, shared={"ended_at": tx.now})
    _add_to_pairs(tx, results)
    return len(ended)


_COUNTED = ("offered", "tried", "active_s", "wait_s", "requests")
_CLOSED = ("id", "offered", "tried", "collected", "lost_s", "outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenAttempt(AttemptResult):
    """An attempt with the counters of its last sign of life, and with its stored pages."""

    id: int
    last_sign: datetime


_OPEN = f"""
    SELECT id, site, node, offered, tried, requests, active_s, wait_s, '{AttemptOutcome.RELEASED}' AS outcome,
        coalesce(progress_at, allocated_at) AS last_sign,
        (SELECT count(*) FROM pages WHERE attempt_id = attempts.id AND NOT late) AS collected
    FROM attempts WHERE id IN :ids AND outcome IS NULL ORDER BY id FOR UPDATE
"""


def _close(now: datetime, attempt: _OpenAttempt, end: AttemptEnd) -> _OpenAttempt:
    """Return an attempt as it ends. Stored pages count, even if its node had no time to report them."""
    is_silent = end.outcome is AttemptOutcome.SILENT
    return replace(
        attempt,
        outcome=end.outcome,
        offered=max(attempt.offered, attempt.collected),
        tried=max(attempt.tried, attempt.collected),
        lost_s=max(0.0, (now - attempt.last_sign).total_seconds()) if is_silent else 0.0,
    )


def _move(
    now: datetime, row: LockedSubtask, end: AttemptEnd, left: int, counters: Mapping[str, Any], lost_s: float
) -> Move:
    """Return the transition of a subtask whose attempt ends."""
    unanswered = row.idle_releases if end.unanswered is None else end.unanswered
    values: dict[str, Any] = {"left": left, "idle_releases": unanswered}
    told = {} if end.because is None else {"because": as_document(end.because)}
    detail: dict[str, Any] = {**told, **counters}
    if end.outcome in (AttemptOutcome.FAILED, AttemptOutcome.SILENT):
        # Its node is now the last of those that it failed on.
        others = [name for name in row.failed_on if name != row.lease_node]
        values |= {"reason": end.reason, "failed_on": [*others, row.lease_node]}
    if end.outcome is AttemptOutcome.SILENT:
        detail["silent_s"] = lost_s
    elif end.outcome is AttemptOutcome.RELEASED:
        waits = end.waits_for
        values["not_before"] = now + timedelta(seconds=end.wait_s) if end.wait_s else None
        values |= {"wait_host": waits.host, "wait_reason": waits.cause} if waits else transitions.NO_WAIT
        detail |= {"delay_s": end.wait_s} if end.wait_s else {}
    reason = "cancelled" if end.outcome is AttemptOutcome.CANCELLED else end.reason
    return Move(row.id, values, row.lease_token, row.attempt_id, row.lease_node, reason, detail)


# --- the sums of pairs ----------------------------------------------------------------------------------------


def _add_to_pairs(tx: Transaction, results: Sequence[AttemptResult]) -> None:
    """Add closed attempts to the sums of their pairs, plain and faded."""
    of: dict[tuple[str, str], list[AttemptResult]] = defaultdict(list)
    for one in results:
        of[one.site, one.node].append(one)
    tx.insert("pair_stats", ("site", "node"), sorted(of), shared={"faded_at": tx.now}, skip_known=True)
    pairs = [f"{site} {node}" for site, node in of]
    rows: list[Any] = tx.records(_StoredPair, _LOCK_PAIRS, sites=list({site for site, _ in of}), pairs=pairs)
    tx.update("pair_stats", ("site", "node"), [_sums(row, tx.now, of[row.site, row.node]) for row in rows])


_FADED = tuple(f"f_{name}" for name in SUMS)
_PAIR: list[tuple[str, Any]] = [
    *(("site", str), ("node", str), ("faded_at", datetime), ("wait_s", float), ("requests", int)),
    *(("rtt_ms", float | None), ("rtt_n", int), *((name, float) for name in (*SUMS, *_FADED))),
]
_StoredPair = make_dataclass("_StoredPair", _PAIR, slots=True)
# A row of values is nothing that both databases look up; few rows have one site.
_LOCK_PAIRS = f"""
    SELECT {", ".join(name for name, _ in _PAIR)} FROM pair_stats
    WHERE site IN :sites AND site || ' ' || node IN :pairs ORDER BY site, node FOR UPDATE
"""


def _sums(row: Any, now: datetime, results: Sequence[AttemptResult]) -> dict[str, Any]:
    """Return the row of a pair with these attempts added."""
    plain = PairStats.unpack(getattr(row, name) for name in SUMS)
    faded = PairStats.unpack(getattr(row, name) for name in _FADED)
    faded = faded.fade((now - row.faded_at).total_seconds())
    distance = RoundTrip(row.rtt_ms or 0.0, row.rtt_n)
    for one in results:
        plain, faded = plain.with_attempt(one), faded.with_attempt(one, MEMORY)
        if one.round_trip is not None:
            distance += one.round_trip
    counted = zip(SUMS, plain.values(), strict=True)
    return {
        "site": row.site,
        "node": row.node,
        "faded_at": max(now, row.faded_at),
        **{name: total if name.endswith("_s") else round(total) for name, total in counted},
        **dict(zip(_FADED, faded.values(), strict=True)),
        "wait_s": row.wait_s + sum(one.wait_s for one in results),
        "requests": row.requests + sum(one.requests for one in results),
        "rtt_ms": distance.ms if distance.n else None,
        "rtt_n": distance.n,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair(PairStats):
    """A pair as it is stored: its sums for decisions.

    Attributes:
        faded_at: the time that the sums are faded to.
        all_tried, wait_s: plain sums: hits requested, and seconds waited for rate limits.
    """

    site: str
    node: str
    faded_at: datetime
    all_tried: int
    wait_s: float


def list_changed(tx: Transaction, since: datetime | None) -> list[ChangedPair]:
    """Return the pairs that an attempt was added to after `since`; `None`: all there are."""
    return tx.records(ChangedPair, _CHANGED, since=since or EVER)


EVER = datetime(1970, 1, 1, tzinfo=UTC)
_CHANGED = f"""
    SELECT site, node, faded_at, tried AS all_tried, wait_s, {", ".join(f"f_{name} AS {name}" for name in SUMS)}
    FROM pair_stats WHERE faded_at > :since
"""


def list_running(tx: Transaction) -> list[AttemptResult]:
    """Return reports of attempts that run: provisional, until their closing adds them to their pairs."""
    return tx.records(AttemptResult, _RUNNING)


_RUNNING = f"""
    SELECT a.site, a.node, a.offered, a.tried, a.collected, a.active_s, '{AttemptOutcome.RELEASED}' AS outcome
    FROM attempts a JOIN subtasks s ON s.attempt_id = a.id WHERE s.state = '{State.CRAWL}' AND a.tried > 0
"""

_GIVEN_BACK = "a.outcome IN ('released', 'cancelled')"
ATTEMPT_COUNTS = f"(NOT {_GIVEN_BACK} OR a.tried > 0)"
"""Whether a closed attempt `a` counts, in SQL: `AttemptResult.counts`. It has tried whatever it collected."""
ATTEMPT_SUMS = f"""
    count(CASE WHEN {ATTEMPT_COUNTS} THEN 1 END) AS attempts,
    count(CASE WHEN a.outcome = 'failed' THEN 1 END) AS failed,
    count(CASE WHEN a.outcome = 'silent' THEN 1 END) AS silent,
    sum(CASE WHEN {_GIVEN_BACK} AND a.tried < a.offered THEN a.tried ELSE a.offered END) AS offered,
    sum(a.tried) AS tried, sum(a.collected) AS collected,
    sum(CASE WHEN {ATTEMPT_COUNTS} THEN a.active_s ELSE 0.0 END) AS active_s, sum(a.lost_s) AS lost_s
"""
"""The sums over closed attempts `a`, in the order of `SUMS`, in SQL: `AttemptResult.sums`."""
