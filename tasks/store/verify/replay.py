"""The event log, replayed: what the rows of subtasks and attempts must say after their events.

One streaming pass over events, attempts and subtasks, all in the order of their subtasks: the events of one subtask are
held at a time, so memory does not grow with the log. A subtask on the happy path is checked at a glance (`_is_happy`);
all others event by event. Each allocation opens the next attempt, under its token (fencing); the event that ends it
names the same token, node and attempt, at the same moment.

The `not_before`, `wait_host`, `wait_reason` and `idle_releases` of a subtask follow from the details of events. If
they were dropped (`tasks.store.queue.upkeep`), or are of a version that did not record it, the value is unknown until
an event sets it again. Times stay as the driver returns them (text with SQLite): they compare in either form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tasks.domain.states import LEGAL, MAX_RECALLS, State, Transition
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import CLOCKS, Violation, as_time

R = TypeVar("R", bound=tuple[Any, ...])


class _EventRow(NamedTuple):
    subtask_id: int
    id: int
    transition: str
    from_state: str | None
    to_state: str
    at: Any
    token: str | None
    attempt_id: int | None
    node: str | None
    reason: str | None
    detail: str | None


_EVENTS = """
    SELECT subtask_id, id, transition, from_state, to_state, at, token, attempt_id, node, reason,
        CASE WHEN transition IN ('create', 'recall', 'release', 'fail', 'succeed') THEN CAST(detail AS TEXT) END
            AS detail
    FROM events ORDER BY subtask_id, id
"""


class _AttemptRow(NamedTuple):
    subtask_id: int
    id: int
    no: int
    round: int
    token: str
    node: str
    allocated_at: Any
    started_at: Any
    ended_at: Any
    outcome: str | None
    reason: str | None
    known: int
    requests: int
    bytes: int
    active_s: float
    wait_s: float
    errors: str
    statuses: str


_ATTEMPTS = """
    SELECT subtask_id, id, no, round, token, node, allocated_at, started_at, ended_at, outcome, reason, known, requests,
        bytes, active_s, wait_s, CAST(errors AS TEXT) AS errors, CAST(statuses AS TEXT) AS statuses
    FROM attempts ORDER BY subtask_id, no
"""


class _SubtaskRow(NamedTuple):
    id: int
    task_id: int
    parent_id: int | None
    left: int
    log_dropped: int
    state: str
    round: int
    recalls: int
    failed_on: str
    assigned_node: str | None
    not_before: Any
    idle_releases: int
    wait_host: str | None
    wait_reason: str | None
    reason: str | None
    lease_token: str | None
    lease_node: str | None
    attempt_id: int | None
    lease_started: int
    attempts: int
    created_at: Any
    changed_at: Any


_SUBTASKS = """
    SELECT id, task_id, parent_id, "left", log_dropped, state, round, recalls, CAST(failed_on AS TEXT) AS failed_on,
        assigned_node, not_before, idle_releases, wait_host, wait_reason, reason, lease_token, lease_node, attempt_id,
        lease_started, attempts, created_at, changed_at
    FROM subtasks ORDER BY id
"""


class _TargetsOfSubtask(NamedTuple):
    """Targets of a subtask: their first and last task, what is to do or came late, and its share of its task's sums."""

    subtask_id: int
    first_task: int
    last_task: int
    todo_hits: int
    todo_results: int
    late: int
    results: int
    read: int
    hits: int
    legal: int


_TARGETS = """
    SELECT subtask_id, min(task_id) AS first_task, max(task_id) AS last_task,
        count(*) FILTER (WHERE state = 'todo' AND kind = 'hit') AS todo_hits,
        count(*) FILTER (WHERE state = 'todo' AND kind = 'result') AS todo_results,
        count(*) FILTER (WHERE state = 'stored' AND reason = 'late') AS late,
        count(*) FILTER (WHERE kind = 'result') AS results,
        count(*) FILTER (WHERE kind = 'result' AND state = 'stored') AS read,
        count(*) FILTER (WHERE kind = 'hit') AS hits,
        count(*) FILTER (WHERE kind = 'hit' AND state IN ('todo', 'stored', 'refused', 'given_up')) AS legal
    FROM targets GROUP BY subtask_id ORDER BY subtask_id
"""
_LEGAL = {(name, begin, end) for name, ways in LEGAL.items() for begin, end in ways.items()}
_OUTCOMES = {
    Transition.SUCCEED.value: "succeeded",
    Transition.FAIL.value: "failed",
    Transition.SILENT.value: "silent",
    Transition.RELEASE.value: "released",
    Transition.CANCEL.value: "cancelled",
}
"""How an attempt ended, by the transition that ended it."""
_UNKNOWN: Final = object()
"""A value that the log does not tell."""


@dataclass(slots=True)
class _Told:
    """The state of a subtask by its events."""

    state: str | None = None
    round: int = 1
    recalls: int = 0
    failed_on: list[str | None] = field(default_factory=list)
    assigned_node: str | None = None
    not_before: Any = None
    idle_releases: Any = 0
    wait_host: Any = None
    wait_reason: Any = None
    reason: str | None = None
    lease_token: str | None = None
    lease_node: str | None = None
    attempt_id: int | None = None
    lease_started: bool = False
    attempts: int = 0
    created_at: Any = None
    changed_at: Any = None


_KINDS = {
    "state": "queue",
    **dict.fromkeys(("round", "recalls", "failed_on", "assigned_node", "reason"), "recalls"),
    **dict.fromkeys(("not_before", "idle_releases", "wait_host", "wait_reason"), "wait"),
    **dict.fromkeys(("lease_token", "lease_node", "attempt_id", "lease_started"), "lease"),
    "attempts": "attempt",
    **dict.fromkeys(("created_at", "changed_at"), "time"),
}
"""Columns of a subtask that follow from its events, each with the kind of a violation there."""


class Groups(Generic[R]):
    """Rows that are ordered by their first column, taken by its values in order."""

    def __init__(self, rows: Iterator[R]) -> None:
        self._groups = groupby(rows, key=itemgetter(0))
        self._next = next(self._groups, None)

    def rows_of(self, key: int) -> list[R]:
        """Return the rows with this value; those with smaller values are passed over."""
        there = self._next
        while there is not None and there[0] < key:
            there = next(self._groups, None)
        found: list[R] = []
        if there is not None and there[0] == key:
            found = list(there[1])
            there = next(self._groups, None)
        self._next = there
        return found


def replay(tx: Transaction, of_tasks: MutableSequence[int]) -> Iterator[Violation]:
    """Check the event log, and every subtask and attempt against it.

    Args:
        of_tasks: four numbers a task, to which the sums of its subtasks' targets are added.
    """
    log, made = Groups(tx.stream(_EventRow, _EVENTS)), Groups(tx.stream(_AttemptRow, _ATTEMPTS))
    work = Groups(tx.stream(_TargetsOfSubtask, _TARGETS))
    for subtask in tx.stream(_SubtaskRow, _SUBTASKS):
        events, attempts = log.rows_of(subtask.id), made.rows_of(subtask.id)
        targets = next(iter(work.rows_of(subtask.id)), None)
        if subtask.log_dropped:
            yield from _without_log(subtask, events, attempts)
        elif not _is_happy(subtask, events, attempts):
            yield from _replayed(subtask, events, attempts)
        if targets:
            for place, n in enumerate(targets[-4:], 4 * subtask.task_id):
                of_tasks[place] += n
        done = subtask.state == "DONE" and subtask.left == 0
        if not (done and targets and targets[1:6] == (subtask.task_id, subtask.task_id, 0, 0, 0)):
            yield from _left(subtask, targets)


_COUNTERS: Final = ("known", "requests", "bytes", "active_s", "wait_s")
_STEPS: Final = (
    ("create", None, "PRIORITY"),
    ("admit", "PRIORITY", "WAIT"),
    ("allocate", "WAIT", "CRAWL"),
    ("succeed", "CRAWL", "SLEEP"),
    ("wake", "SLEEP", "DONE"),
)
_NOBODY: Final = (None, None, None, None)
_STATE, _CREATED = _SubtaskRow._fields.index("state"), _SubtaskRow._fields.index("created_at")
_HAPPY: Final = ("DONE", 1, 0, "[]", None, None, 0, None, None, None, None, None, False, 1)
"""The values of a subtask on the happy path, from `state` to `attempts`."""


def _is_happy(row: _SubtaskRow, log: Sequence[_EventRow], made: Sequence[_AttemptRow]) -> bool:
    """Return True if a subtask was created, admitted, given to a node once and done, and all its rows say so.

    Most subtasks are. `_replayed` finds nothing wrong in these; it is slower.
    """
    if len(log) != 5 or len(made) != 1 or row[_STATE:_CREATED] != _HAPPY:
        return False
    created, admitted, given, ended, woken = log
    (it,) = made
    return (
        (created[2:5], admitted[2:5], given[2:5], ended[2:5], woken[2:5]) == _STEPS
        and created[6:10] == admitted[6:10] == _NOBODY
        and woken[6:10] == (None, None, it.node, None)
        and (it.no, it.round, it.outcome) == (1, 1, "succeeded")
        and given[5:9] == (it.allocated_at, it.token, it.id, it.node)
        and ended[5:10] == (it.ended_at, it.token, it.id, it.node, it.reason)
        and created.at <= admitted.at <= given.at <= ended.at <= woken.at
        and (row.created_at, row.changed_at) == (created.at, woken.at)
        and not _miscounted(it, ended.detail)
    )


def _miscounted(attempt: _AttemptRow, detail: str | None) -> str:
    """Return the numbers on which an attempt and its end differ; empty if all agree, or the detail was dropped."""
    if detail is None:
        return ""
    counted = _detail(detail)
    different = [
        f"{name} {is_}, not {counted[name]}"
        for name in _COUNTERS
        if name in counted and (is_ := getattr(attempt, name)) != counted[name]
    ]
    for name in ("errors", "statuses"):
        if name in counted and _counts(text := getattr(attempt, name)) != counted[name]:
            different.append(f"{name} {text}, not {counted[name]}")
    return ", ".join(different)


@lru_cache(maxsize=1024)
def _counts(text: str) -> Any:
    """Return errors or statuses with their counts; few texts differ."""
    return json.loads(text)


def _detail(text: str | None) -> Mapping[str, Any]:
    """Return the detail of an event; empty if it has none, or it was dropped."""
    return json.loads(text) if text is not None else {}


def _left(subtask: _SubtaskRow, targets: _TargetsOfSubtask | None) -> Iterator[Violation]:
    """Check the targets of a subtask against what it says is left to do."""
    hits = results = late = 0
    if targets:
        _, first, last, hits, results, late, *_ = targets
        if (first, last) != (subtask.task_id, subtask.task_id):
            message = f"is of task {subtask.task_id}, its targets of tasks {first} to {last}"
            yield Violation("copy", subtask.id, message)
    if subtask.state == State.DONE and hits + results:
        yield Violation("lost", subtask.id, f"is DONE, but {hits + results} of its targets are still to do")
    todo = hits + results * HITS_UNREAD
    # Counted when its last attempt ended: targets whose pages came late are done since.
    if subtask.state not in (State.CRAWL, State.CANCELLED) and not todo <= subtask.left <= todo + late:
        message = (
            f"says that {subtask.left} hits are left, its targets to do count {todo}, and {late} came late"
        )
        yield Violation("left", subtask.id, message)


def _without_log(
    subtask: _SubtaskRow, log: Sequence[_EventRow], made: Sequence[_AttemptRow]
) -> Iterator[Violation]:
    """Check a subtask whose log was dropped: it is settled, its attempts are all there, and closed."""
    if log:
        yield Violation("chain", subtask.id, f"has {len(log)} events, and says that its log was dropped")
    if subtask.state not in (State.DONE, State.CANCELLED):
        yield Violation("queue", subtask.id, f"is in {subtask.state}, and its log was dropped")
    if [one.no for one in made] != list(range(1, subtask.attempts + 1)) or any(
        one.outcome is None for one in made
    ):
        message = f"says {subtask.attempts} attempts, and has {[(one.no, one.outcome) for one in made]}"
        yield Violation("attempt", subtask.id, message)


def _replayed(
    subtask: _SubtaskRow, log: Sequence[_EventRow], made: Sequence[_AttemptRow]
) -> Iterator[Violation]:
    """Check a subtask and its attempts against its events, one by one."""
    subtask_id, told = subtask.id, _Told()
    attempt: _AttemptRow | None = None
    last_at: Any = None
    for event in log:
        _, _, transition, begin, end, at, token, attempt_id, node, reason, detail = event
        if begin != told.state:
            message = f"does not start from {told.state}, where it was"
            yield Violation("chain", subtask_id, f"{_named(event)} {message}")
        if (transition, begin, end) not in _LEGAL:
            yield Violation("transition", subtask_id, f"{_named(event)} is no legal transition")
        told.state = end
        if last_at is not None and at < last_at and as_time(at) < as_time(last_at) - CLOCKS:
            yield Violation("order", subtask_id, f"{_named(event)} is of {at}, the one before of {last_at}")
        last_at = at
        if transition == "allocate":
            attempt = made[told.attempts] if told.attempts < len(made) else None
            told.attempts += 1
            told.lease_token, told.lease_node, told.attempt_id = token, node, attempt_id
            told.wait_host = told.wait_reason = None
            told.lease_started = attempt is not None and attempt.started_at is not None
            opened = (told.attempts, told.round, attempt_id, token, node, at)
            if attempt is None or opened != (attempt.no, attempt.round, attempt.id, *attempt[4:7]):
                yield _unpaired(subtask_id, event, attempt)
        elif begin == "CRAWL":
            if transition == "cancel":
                token, node = told.lease_token, told.lease_node
                ends: tuple[Any, ...] = (attempt_id, "cancelled", None, at)
            else:
                ends = (attempt_id, _OUTCOMES.get(transition), reason, at)
            held = (told.attempt_id, told.lease_token, told.lease_node) == (attempt_id, token, node)
            if (
                not held
                or attempt is None
                or ends != (attempt.id, attempt.outcome, attempt.reason, attempt.ended_at)
            ):
                yield _unpaired(subtask_id, event, attempt)
            elif transition in ("succeed", "fail") and (counted := _miscounted(attempt, detail)):
                yield Violation("counters", subtask_id, f"{_named(event)} of attempt {attempt_id}: {counted}")
            attempt = None
            told.lease_token = told.lease_node = told.attempt_id = None
            told.lease_started = False
            _closed(told, transition, at, node, reason, detail)
        else:
            yield from _moved(subtask, told, event, made)
        if told.created_at is None:
            told.created_at = at
        told.changed_at = at
    if attempt is not None and (attempt.ended_at, attempt.outcome, attempt.reason) != (None, None, None):
        yield _unpaired(subtask_id, log[-1], attempt)
    for one in made[told.attempts :]:
        yield Violation("attempt", subtask_id, f"attempt {one.id} was never allocated")
    yield from _different(subtask, told)


def _closed(
    told: _Told, transition: str, at: Any, node: str | None, reason: str | None, detail: str | None
) -> None:
    """Apply the end of an attempt to its subtask."""
    if transition == "succeed":
        told.idle_releases = 0
    elif transition in ("fail", "silent"):
        told.reason = reason
        told.failed_on = [*(one for one in told.failed_on if one != node), node]
        if transition == "fail":
            told.idle_releases = _detail(detail).get("idle_releases", _UNKNOWN)
    elif transition == "release":
        known = _detail(detail)
        delay_s = known.get("delay_s", 0.0)
        if detail is None:
            told.not_before = told.wait_host = told.wait_reason = told.idle_releases = _UNKNOWN
            return
        if delay_s > 0.0:
            told.not_before = as_time(at) + timedelta(seconds=delay_s)
        waits_for = known.get("waits_for", _UNKNOWN if delay_s > 0.0 else None)
        if isinstance(waits_for, list):
            told.wait_host, told.wait_reason = waits_for
        else:  # versions before 0.11.0 wrote a sentence
            told.wait_host = told.wait_reason = None if waits_for is None else _UNKNOWN
        if told.idle_releases != 0 or "idle_releases" in known:
            told.idle_releases = known.get("idle_releases", _UNKNOWN)
    elif transition == "cancel":
        told.wait_host = told.wait_reason = None


def _moved(
    subtask: _SubtaskRow, told: _Told, event: _EventRow, made: Sequence[_AttemptRow]
) -> Iterator[Violation]:
    """Apply a transition without a lease to its subtask, and check whether it says whose it is."""
    _, _, transition, _, _, at, token, attempt_id, node, reason, detail = event
    says: tuple[Any, ...] = (None, None, None, None)
    if transition == "create":
        if subtask.parent_id is not None:
            when = _detail(detail).get("not_before", _UNKNOWN)
            told.not_before = datetime.fromisoformat(when) if isinstance(when, str) else when
    elif transition in ("recall", "give_up"):
        says = (None, None, told.failed_on[-1] if told.failed_on else None, told.reason)
        if transition == "recall":
            told.recalls += 1
            if told.recalls == MAX_RECALLS + 1:
                more = f"{_named(event)} is more than recall {MAX_RECALLS} of a round"
                yield Violation("recalls", subtask.id, more)
            told.assigned_node = None
            delay_s = _detail(detail).get("delay_s")
            told.not_before = _UNKNOWN if delay_s is None else as_time(at) + timedelta(seconds=delay_s)
    elif transition == "wake":
        says = (None, None, made[told.attempts - 1].node if 0 < told.attempts <= len(made) else None, None)
    elif transition == "retry":
        says = (None, None, node, None)
        told.round += 1
        told.recalls = told.idle_releases = 0
        told.failed_on = []
        told.not_before = told.reason = None
        told.assigned_node = node
    elif transition == "cancel":
        says = (None, None, None, "cancelled")
        told.wait_host = told.wait_reason = None
    elif transition == "set_aside":
        says = (None, None, None, reason)
        told.reason = reason
        told.failed_on = []
        told.not_before = told.wait_host = told.wait_reason = None
    if (token, attempt_id, node, reason) != says:
        message = (
            f"says (token, attempt, node, reason) {(token, attempt_id, node, reason)}, which must be {says}"
        )
        yield Violation("event", subtask.id, f"{_named(event)} {message}")


def _different(subtask: _SubtaskRow, told: _Told) -> Iterator[Violation]:
    """Yield the columns of a subtask that are not what its events led to."""
    for name, kind in _KINDS.items():
        is_, should = getattr(subtask, name), getattr(told, name)
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
        yield Violation(kind, subtask.id, message)


def _no_later(is_: Any, should: Any) -> bool:
    """Return True if a wait ends when it should: earlier if the database's clock was set back (`queue.upkeep`)."""
    return is_ is not None and should is not None and bool(as_time(is_) <= as_time(should))


def _unpaired(subtask_id: int, event: _EventRow, attempt: _AttemptRow | None) -> Violation:
    of = f"(attempt {event.attempt_id}, token {event.token}, node {event.node}, reason {event.reason}, at {event.at})"
    if attempt is None:
        return Violation("attempt", subtask_id, f"{_named(event)} {of} has no attempt")
    who = f"token {attempt.token}, node {attempt.node}"
    is_ = f"attempt {attempt.id} (number {attempt.no}, round {attempt.round}, {who}"
    times = (
        f"allocated {attempt.allocated_at}, ended {attempt.ended_at}: {attempt.outcome}, {attempt.reason})"
    )
    return Violation("attempt", subtask_id, f"{_named(event)} {of} does not pair with {is_}, {times}")


def _named(event: _EventRow) -> str:
    return f"event {event.id} ({event.transition}: {event.from_state} to {event.to_state})"
