"""The event log, replayed: what the rows of subtasks and attempts must say after their events.

One streaming pass over events, attempts and subtasks, all in the order of their subtasks: the events of one subtask are
held at a time, so memory does not grow with the log. What went the happy path is proved at a glance
(`tasks.store.verify.happy_path`); all else event by event. Each allocation opens the next attempt, under its token
(fencing); what ends it names the same token, node and attempt, at the same moment.

The `not_before`, `waits_for` and `idle_releases` of a subtask follow from the details of events. Where these
were dropped (`tasks.store.queue.upkeep`), or are of a version that did not record it, it is unknown until an event sets
it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from tasks.domain.states import LEGAL, MAX_RECALLS, State, Transition
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.sql.database import stream
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.grouped import Groups, TargetSums
from tasks.store.verify.happy_path import detail_of, miscounted, on_happy_path
from tasks.store.verify.invariants import CLOCKS, Violation, as_time

_EVENTS = """
SELECT subtask_id, id, transition, from_state, to_state, at, token, attempt_id, node, reason,
    CASE WHEN transition IN ('create', 'recall', 'release', 'fail', 'succeed') THEN CAST(detail AS TEXT) END
FROM events ORDER BY subtask_id, id
"""
_ATTEMPTS = """
SELECT subtask_id, id, no, round, token, node, allocated_at, started_at, ended_at, outcome, reason, known, requests,
    bytes, active_s, wait_s, CAST(errors AS TEXT), CAST(statuses AS TEXT)
FROM attempts ORDER BY subtask_id, no
"""
_SUBTASKS = """
SELECT id, task_id, parent_id, "left", log_dropped, state, round, recalls, CAST(failed_on AS TEXT), assigned_node,
    not_before, idle_releases, waits_for, reason, lease_token, lease_node, attempt_id, lease_started, attempts,
    created_at, changed_at
FROM subtasks ORDER BY id
"""
_TARGETS = """
SELECT subtask_id, min(task_id), max(task_id),
    sum(CASE WHEN state = 'todo' AND kind = 'hit' THEN 1 ELSE 0 END),
    sum(CASE WHEN state = 'todo' AND kind = 'result' THEN 1 ELSE 0 END),
    sum(CASE WHEN state = 'stored' AND reason = 'late' THEN 1 ELSE 0 END),
    sum(CASE WHEN kind = 'result' THEN 1 ELSE 0 END),
    sum(CASE WHEN kind = 'result' AND state = 'stored' THEN 1 ELSE 0 END),
    sum(CASE WHEN kind = 'hit' THEN 1 ELSE 0 END),
    sum(CASE WHEN kind = 'hit' AND state IN ('todo', 'stored', 'refused', 'given_up') THEN 1 ELSE 0 END)
FROM targets GROUP BY subtask_id ORDER BY subtask_id
"""
_OUTCOMES = {
    Transition.SUCCEED.value: "succeeded",
    Transition.FAIL.value: "failed",
    Transition.SILENT.value: "silent",
    Transition.RELEASE.value: "released",
    Transition.CANCEL.value: "cancelled",
}
"""How an attempt ended, by the transition that ended it."""
_STARTED, _ENDED = 7, 8
_OUTCOME = slice(9, 11)
"""Places in a row of `_ATTEMPTS`."""
_OF_TASK = slice(6, 10)
"""The parts of a task's sums, in a row of `_TARGETS`."""
_UNKNOWN: Final = object()
"""A value that the log does not tell."""


@dataclass(slots=True)
class _Told:
    """The state of a subtask by its events."""

    state: str | None = None
    round: int = 1
    recalls: int = 0
    failed_on: list[str] = field(default_factory=list)
    assigned_node: str | None = None
    not_before: Any = None
    idle_releases: Any = 0
    waits_for: Any = None
    reason: str | None = None
    lease_token: str | None = None
    lease_node: str | None = None
    attempt_id: int | None = None
    lease_started: bool = False
    attempts: int = 0
    created_at: Any = None
    changed_at: Any = None


_COLUMNS = (
    ("state", "queue"),
    ("round", "recalls"),
    ("recalls", "recalls"),
    ("failed_on", "recalls"),
    ("assigned_node", "recalls"),
    ("not_before", "wait"),
    ("idle_releases", "wait"),
    ("waits_for", "wait"),
    ("reason", "recalls"),
    ("lease_token", "lease"),
    ("lease_node", "lease"),
    ("attempt_id", "lease"),
    ("lease_started", "lease"),
    ("attempts", "attempt"),
    ("created_at", "time"),
    ("changed_at", "time"),
)
"""Columns of a subtask from `state` on, each with the kind of a violation there."""


def replay(conn: Transaction, of_tasks: TargetSums) -> Iterator[Violation]:
    """Check the event log, and every subtask and attempt against it.

    Args:
        of_tasks: gets the targets of each subtask, for its task.
    """
    log, made = Groups(stream(conn, _EVENTS)), Groups(stream(conn, _ATTEMPTS))
    work = Groups(stream(conn, _TARGETS))
    for subtask_id, task_id, parent_id, left, dropped, *row in stream(conn, _SUBTASKS):
        events, attempts, targets = log.of(subtask_id), made.of(subtask_id), work.of(subtask_id)
        if dropped:
            yield from _without_log(subtask_id, row, events, attempts)
        elif not on_happy_path(row, events, attempts):
            yield from _replayed(subtask_id, parent_id, row, events, attempts)
        if targets:
            of_tasks.add(task_id, targets[0][_OF_TASK])
        if not (row[0] == "DONE" and left == 0 and targets and targets[0][1:5] == (task_id, task_id, 0, 0)):
            yield from _left(subtask_id, task_id, left, row[0], targets)


def _left(
    subtask_id: int, task_id: int, left: int, state: str, work: Sequence[Sequence[Any]]
) -> Iterator[Violation]:
    """The targets of a subtask against what it says is left to do."""
    hits = results = late = 0
    if work:
        _, first, last, hits, results, late, *_ = work[0]
        if (first, last) != (task_id, task_id):
            yield Violation(
                "copy", subtask_id, f"is of task {task_id}, its targets of tasks {first} to {last}"
            )
    if state == State.DONE and hits + results:
        yield Violation("lost", subtask_id, f"is DONE, but {hits + results} of its targets are still to do")
    todo = hits + results * HITS_UNREAD
    # Counted when its last attempt ended: targets whose pages came late are done since.
    if state not in (State.CRAWL, State.CANCELLED) and not todo <= left <= todo + late:
        message = f"says that {left} hits are left, its targets to do count {todo}, and {late} came late"
        yield Violation("left", subtask_id, message)


def _without_log(
    subtask_id: int, row: Sequence[Any], log: Sequence[Sequence[Any]], made: Sequence[Sequence[Any]]
) -> Iterator[Violation]:
    """Checks a subtask whose log was dropped: it is settled, its attempts are all there, and closed."""
    says = dict(zip((name for name, _ in _COLUMNS), row, strict=True))
    if log:
        yield Violation("chain", subtask_id, f"has {len(log)} events, and says that its log was dropped")
    if says["state"] not in (State.DONE, State.CANCELLED):
        yield Violation("queue", subtask_id, f"is in {says['state']}, and its log was dropped")
    if [one[2] for one in made] != list(range(1, says["attempts"] + 1)) or any(
        one[9] is None for one in made
    ):
        message = f"says {says['attempts']} attempts, and has {[(one[2], one[9]) for one in made]}"
        yield Violation("attempt", subtask_id, message)


def _replayed(
    subtask_id: int,
    parent_id: int | None,
    row: Sequence[Any],
    log: Sequence[Sequence[Any]],
    made: Sequence[Sequence[Any]],
) -> Iterator[Violation]:
    told = _Told()
    attempt: Sequence[Any] | None = None
    last_at: Any = None
    for event in log:
        _, _, transition, begin, end, at, token, attempt_id, node, reason, detail = event
        if begin != told.state:
            message = f"does not start from {told.state}, where it was"
            yield Violation("chain", subtask_id, f"{_named(event)} {message}")
        if not _legal(transition, begin, end):
            yield Violation("transition", subtask_id, f"{_named(event)} is no legal transition")
        told.state = end
        if last_at is not None and at < last_at and as_time(at) < as_time(last_at) - CLOCKS:
            yield Violation("order", subtask_id, f"{_named(event)} is of {at}, the one before of {last_at}")
        last_at = at
        if transition == "allocate":
            attempt = made[told.attempts] if told.attempts < len(made) else None
            told.attempts += 1
            told.lease_token, told.lease_node, told.attempt_id = token, node, attempt_id
            told.waits_for = None
            told.lease_started = attempt is not None and attempt[_STARTED] is not None
            if attempt is None or (told.attempts, told.round, attempt_id, token, node, at) != (
                *attempt[2:4],
                attempt[1],
                *attempt[4:7],
            ):
                yield _unpaired(subtask_id, event, attempt)
        elif begin == "CRAWL":
            if transition == "cancel":
                token, node = told.lease_token, told.lease_node
                ends: tuple[Any, ...] = (attempt_id, "cancelled", None, at)
            else:
                ends = (attempt_id, _OUTCOMES.get(transition), reason, at)
            held = (told.attempt_id, told.lease_token, told.lease_node) == (attempt_id, token, node)
            if not held or attempt is None or ends != (attempt[1], *attempt[_OUTCOME], attempt[_ENDED]):
                yield _unpaired(subtask_id, event, attempt)
            elif transition in ("succeed", "fail") and (counted := miscounted(attempt, detail)):
                yield Violation("counters", subtask_id, f"{_named(event)} of attempt {attempt_id}: {counted}")
            attempt = None
            told.lease_token = told.lease_node = told.attempt_id = None
            told.lease_started = False
            _closed(told, transition, at, node, reason, detail)
        else:
            yield from _moved(subtask_id, told, event, made, parent_id)
        if told.created_at is None:
            told.created_at = at
        told.changed_at = at
    if attempt is not None and attempt[_ENDED : _ENDED + 3] != (None, None, None):
        yield _unpaired(subtask_id, log[-1], attempt)
    for one in made[told.attempts :]:
        yield Violation("attempt", subtask_id, f"attempt {one[1]} was never allocated")
    yield from _different(subtask_id, told, row)


def _closed(told: _Told, transition: str, at: Any, node: str, reason: str | None, detail: str | None) -> None:
    """Apply the end of an attempt to its subtask."""
    if transition == "succeed":
        told.idle_releases = 0
    elif transition in ("fail", "silent"):
        told.reason = reason
        told.failed_on = [*(one for one in told.failed_on if one != node), node]
        if transition == "fail":
            told.idle_releases = detail_of(detail).get("idle_releases", _UNKNOWN)
    elif transition == "release":
        known = detail_of(detail)
        delay_s = known.get("delay_s", 0.0)
        if detail is None:
            told.not_before = told.waits_for = told.idle_releases = _UNKNOWN
            return
        if delay_s > 0.0:
            told.not_before = as_time(at) + timedelta(seconds=delay_s)
        told.waits_for = known.get("waits_for", _UNKNOWN if delay_s > 0.0 else None)
        if told.idle_releases != 0 or "idle_releases" in known:
            told.idle_releases = known.get("idle_releases", _UNKNOWN)
    elif transition == "cancel":
        told.waits_for = None


def _moved(
    subtask_id: int, told: _Told, event: Sequence[Any], made: Sequence[Sequence[Any]], parent_id: int | None
) -> Iterator[Violation]:
    """Apply a transition without a lease to its subtask, and check whether it says whose it is."""
    _, _, transition, _, _, at, token, attempt_id, node, reason, detail = event
    says: tuple[Any, ...] = (None, None, None, None)
    if transition == "create":
        if parent_id is not None:
            when = detail_of(detail).get("not_before", _UNKNOWN)
            told.not_before = datetime.fromisoformat(when) if isinstance(when, str) else when
    elif transition in ("recall", "give_up"):
        says = (None, None, told.failed_on[-1] if told.failed_on else None, told.reason)
        if transition == "recall":
            told.recalls += 1
            if told.recalls == MAX_RECALLS + 1:
                more = f"{_named(event)} is more than recall {MAX_RECALLS} of a round"
                yield Violation("recalls", subtask_id, more)
            told.assigned_node = None
            delay_s = detail_of(detail).get("delay_s")
            told.not_before = _UNKNOWN if delay_s is None else as_time(at) + timedelta(seconds=delay_s)
    elif transition == "wake":
        says = (None, None, made[told.attempts - 1][5] if 0 < told.attempts <= len(made) else None, None)
    elif transition == "retry":
        says = (None, None, node, None)
        told.round += 1
        told.recalls = told.idle_releases = 0
        told.failed_on = []
        told.not_before = told.reason = None
        told.assigned_node = node
    elif transition == "cancel":
        says = (None, None, None, "cancelled")
        told.waits_for = None
    elif transition == "set_aside":
        says = (None, None, None, reason)
        told.reason = reason
        told.failed_on = []
        told.not_before = told.waits_for = None
    if (token, attempt_id, node, reason) != says:
        message = (
            f"says (token, attempt, node, reason) {(token, attempt_id, node, reason)}, which must be {says}"
        )
        yield Violation("event", subtask_id, f"{_named(event)} {message}")


def _different(subtask_id: int, told: _Told, row: Sequence[Any]) -> Iterator[Violation]:
    """The columns of a subtask that are not what its events led to."""
    for (name, kind), is_ in zip(_COLUMNS, row, strict=True):
        should = getattr(told, name)
        if should is _UNKNOWN or is_ == should:
            continue
        if name == "failed_on":
            if json.loads(is_) == should:
                continue
        elif name == "not_before" and _no_later(is_, should):
            continue
        if name == "state":
            message = f"is in {is_}, but its last event led to {should}"
        elif name == "recalls":
            message = f"says {is_} recalls, its events of the round {should}"
        else:
            message = (
                f"{name} is {is_}, its events led to {as_time(should) if name == 'not_before' else should}"
            )
        yield Violation(kind, subtask_id, message)


def _no_later(is_: Any, should: Any) -> bool:
    """Return True if a wait ends when it should: earlier if the database's clock was set back (`queue.upkeep`)."""
    return is_ is not None and should is not None and bool(as_time(is_) <= as_time(should))


def _unpaired(subtask_id: int, event: Sequence[Any], attempt: Sequence[Any] | None) -> Violation:
    of = f"(attempt {event[7]}, token {event[6]}, node {event[8]}, reason {event[9]}, at {event[5]})"
    if attempt is None:
        return Violation("attempt", subtask_id, f"{_named(event)} {of} has no attempt")
    is_ = f"attempt {attempt[1]} (number {attempt[2]}, round {attempt[3]}, token {attempt[4]}, node {attempt[5]}"
    times = f"allocated {attempt[6]}, ended {attempt[8]}: {attempt[9]}, {attempt[10]})"
    return Violation("attempt", subtask_id, f"{_named(event)} {of} does not pair with {is_}, {times}")


def _named(event: Sequence[Any]) -> str:
    return f"event {event[1]} ({event[2]}: {event[3]} to {event[4]})"


@lru_cache(maxsize=1024)
def _legal(transition: str, begin: str | None, end: str) -> bool:
    try:
        return LEGAL[Transition(transition)].get(None if begin is None else State(begin)) == end
    except ValueError:
        return False
